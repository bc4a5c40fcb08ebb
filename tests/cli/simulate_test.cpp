// SPDX-License-Identifier: Apache-2.0
// refit simulate: what it prints and writes.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "program.hpp"

namespace refit::testing_cli {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class Simulate : public testing::Test {
protected:
    Simulate() { fs::create_directories(folder_); }
    ~Simulate() override { fs::remove_all(folder_); }

    [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
    [[nodiscard]] std::size_t files() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator{folder_}, fs::directory_iterator{}));
    }

private:
    fs::path folder_ =
        fs::temp_directory_path() /
        ("refit-simulate-" + std::string{testing::UnitTest::GetInstance()->current_test_info()->name()} +
         std::to_string(::getpid()));
};

Json json_of(std::vector<std::string> words) {
    words.insert(words.begin(), "simulate");
    words.insert(words.end(), {"-o", "json"});
    const auto run = run_refit(words);
    EXPECT_EQ(run.code, 0) << run.err;
    return Json::parse(run.out);
}

TEST_F(Simulate, SaysWhatMovesTheAnswerAndWhereTheTimeGoes) {
    const auto run = run_refit({"simulate", "deepseek-v3-h100"});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(run.err, "");
    const auto lines = lines_of(run.out);
    ASSERT_GT(lines.size(), 20U);
    EXPECT_EQ(lines[0], "DeepSeek-V3  671.03 B parameters, BF16, 1.342 TB in 45,395 tensors (MTP left out)");
    EXPECT_NE(lines[1].find("by reshard, NeMo RL (hybrid)"), std::string::npos) << lines[1];
    for (const char* part : {"  simulated ",
                             "  closed form ",
                             "  published ",
                             "  links alone ",
                             "  bound ",
                             "Where the time goes",
                             "Timeline",
                             "Links",
                             "Who waits for what",
                             "  Change ",
                             "Next:  refit simulate deepseek-v3-h100"}) {
        EXPECT_NE(run.out.find(part), std::string::npos) << part;
    }
}

TEST_F(Simulate, FitsAScreenOfPlainAscii) {
    for (const char* scenario : {"deepseek-v3-h100",
                                 "deepseek-v3-gb200",
                                 "qwen3-235b-h100",
                                 "kimi-k3-gb200",
                                 "reshard-one-domain"}) {
        for (const char* method : {"hybrid", "gather-broadcast", "striped"}) {
            const auto run = run_refit({"simulate", scenario, "--method", method});
            EXPECT_EQ(run.code, 0) << scenario << " " << method << run.err;
            const auto lines = lines_of(run.out);
            EXPECT_LE(lines.size(), 48U) << scenario << " " << method;
            for (const auto& line : lines) {
                EXPECT_LE(line.size(), 100U) << scenario << " " << method << ": " << line;
                EXPECT_TRUE(std::ranges::all_of(line, [](char c) { return c >= ' ' && c <= '~'; })) << line;
            }
        }
    }
}

TEST_F(Simulate, PrintsTheSameOnATerminalAndThroughAPipe) {
    if (!has_terminals()) {
        GTEST_SKIP() << "no terminals here";
    }
    Setting terminal;
    terminal.on_terminal = true;
    const std::vector<std::string> words{"simulate", "reshard-two-domains", "--no-progress"};
    EXPECT_EQ(run_refit(words, terminal).out, run_refit(words).out);
}

// Steps tile the time from 0 to the end, and the activities' seconds on the path sum to it.
TEST_F(Simulate, HasACriticalPathThatTilesTheTime) {
    for (const char* method : {"hybrid", "gather-broadcast", "direct"}) {
        const auto report = json_of({"deepseek-v3-h100", "--method", method});
        const auto& simulation = report.at("simulation");
        const auto seconds = simulation.at("seconds").get<double>();
        double reached = 0.0;
        for (const auto& step : simulation.at("critical_path")) {
            EXPECT_NEAR(step.at("from_seconds").get<double>(), reached, 1e-12);
            reached = step.at("to_seconds").get<double>();
        }
        EXPECT_NEAR(reached, seconds, 1e-12);
        double critical = 0.0;
        for (const auto& activity : simulation.at("activities")) {
            critical += activity.at("critical_seconds").get<double>();
            EXPECT_LE(activity.at("busy_seconds").get<double>(), seconds * (1.0 + 1e-12));
        }
        EXPECT_NEAR(critical, seconds, 1e-9 * seconds);
        double phases = 0.0;
        for (const auto& phase : simulation.at("phases")) {
            phases += phase.at("seconds").get<double>();
        }
        EXPECT_NEAR(phases, seconds, 1e-9 * seconds);
    }
}

TEST_F(Simulate, IsTheReportOfCompareWithTheSimulationsTimes) {
    const auto report = json_of({"deepseek-v3-h100", "--method", "hybrid"});
    const auto compared = compare_json({"deepseek-v3-h100", "--method", "hybrid"});
    const auto& method = report.at("methods").at(0);
    EXPECT_EQ(method.at("kind"), "simulate");
    EXPECT_EQ(method.at("seconds"), report.at("simulation").at("seconds"));
    EXPECT_EQ(method.at("estimate_seconds"), compared.at("methods").at(0).at("seconds"));
    EXPECT_EQ(method.at("network_bytes"), compared.at("methods").at(0).at("network_bytes"));
    EXPECT_LE(method.at("bound_seconds").get<double>(), method.at("transfer_seconds").get<double>());
    EXPECT_LE(method.at("transfer_seconds").get<double>(), method.at("seconds").get<double>());
}

// All bytes out of NICs by the links' sums are the plan's: each link stands for `members` ranks.
TEST_F(Simulate, CarriesTheBytesOfThePlan) {
    for (const char* method : {"hybrid", "direct", "gather-broadcast"}) {
        const auto report = json_of({"qwen3-235b-h100", "--method", method});
        double out = 0.0;
        double in = 0.0;
        for (const auto& link : report.at("simulation").at("links")) {
            const auto bytes = link.at("bytes").get<double>() * link.at("members").get<double>();
            out += link.at("port") == "NIC out" ? bytes : 0.0;
            in += link.at("port") == "NIC in" ? bytes : 0.0;
        }
        const auto network = report.at("methods").at(0).at("network_bytes").get<double>();
        EXPECT_NEAR(out, network, 1e-4 * network) << method;
        EXPECT_NEAR(in, network, 1e-4 * network) << method;
    }
}

TEST_F(Simulate, WritesARowATaskAsCsv) {
    const auto run = run_refit({"simulate", "qwen3-235b-h100", "-o", "csv"});
    EXPECT_EQ(run.code, 0) << run.err;
    const auto lines = lines_of(run.out);
    EXPECT_EQ(lines.front(), "task,activity,lane,item,plan_stage,start_seconds,end_seconds,bytes,limited_by");
    const auto report = json_of({"qwen3-235b-h100"});
    EXPECT_EQ(lines.size(), 1 + report.at("simulation").at("tasks").get<std::size_t>());
    EXPECT_TRUE(lines[1].starts_with("0,control,control,0,0,0,")) << lines[1];
    EXPECT_EQ(run_refit({"simulate", "qwen3-235b-h100", "-o", "csv", "-O", path("rows.csv")}).out, "");
    std::ifstream file{path("rows.csv")};
    std::ostringstream text;
    text << file.rdbuf();
    EXPECT_EQ(text.str(), run.out);
    EXPECT_EQ(files(), 1U);
}

TEST_F(Simulate, WritesTablesAsMarkdown) {
    const auto run = run_refit({"simulate", "deepseek-v3-h100", "-o", "md"});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_NE(run.out.find("| activity | critical_seconds | busy_seconds | limited_by |"), std::string::npos);
    EXPECT_NE(run.out.find("| closed form | "), std::string::npos);
}

TEST_F(Simulate, WritesATraceBesideItsAnswer) {
    const auto run = run_refit({"simulate", "deepseek-v3-h100", "--trace", path("out.json")});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_NE(run.err.find("slices"), std::string::npos) << run.err;
    EXPECT_EQ(run.out, run_refit({"simulate", "deepseek-v3-h100"}).out);
    std::ifstream file{path("out.json")};
    const auto trace = Json::parse(file);
    EXPECT_GT(trace.at("traceEvents").size(), 500U);
    EXPECT_EQ(files(), 1U);
    EXPECT_EQ(run_refit({"simulate", "deepseek-v3-h100", "-q", "--trace", path("out.json")}).err, "");
}

TEST_F(Simulate, SaysNothingWhereTheTraceCannotBeWritten) {
    const auto run = run_refit({"simulate", "reshard-one-domain", "--trace", path("none") + "/out.json"});
    EXPECT_EQ(run.code, 6);
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(run_refit({"simulate", "reshard-one-domain", "--trace", "/dev/full"}).code, 6);
    Setting full;
    full.stdout_file = "/dev/full";
    EXPECT_EQ(run_refit({"simulate", "reshard-one-domain", "-o", "csv"}, full).code, 6);
}

TEST_F(Simulate, RefusesWhatItCannotRunWithItsExitCode) {
    EXPECT_EQ(run_refit({"simulate"}).code, 2);
    EXPECT_EQ(run_refit({"simulate", "deepseek-v3-h100", "--method", "hybrid", "--method", "direct"}).code,
              2);
    EXPECT_EQ(run_refit({"simulate", "deepseek-v3-h100", "--scenario", "deepseek-v3-h100"}).code, 2);
    EXPECT_EQ(run_refit({"simulate", "deepseek-v3-h100", "--trase", "x"}).code, 2);
    EXPECT_EQ(run_refit({"simulate", "no-such-scenario"}).code, 3);
    const auto unknown = run_refit({"simulate", "deepseek-v3-h100", "--method", "hybird"});
    EXPECT_EQ(unknown.code, 3);
    EXPECT_NE(unknown.err.find("hybrid"), std::string::npos) << unknown.err;
    EXPECT_EQ(run_refit({"simulate", "deepseek-v3-h100", "--generate", "tp32.pp2"}).code, 4);
}

TEST_F(Simulate, TakesAPlanFileWithTheScenarioThatItNames) {
    for (const char* name : {"plan.json", "plan.cbor"}) {
        ASSERT_EQ(run_refit({"plan", "reshard-two-domains", "--method", "striped", "-O", path(name)}).code,
                  0);
        const auto from_file = run_refit({"simulate", path(name)});
        EXPECT_EQ(from_file.code, 0) << from_file.err;
        const auto planned = run_refit({"simulate", "reshard-two-domains", "--method", "striped"});
        // All but the commands at the end, which name the file.
        EXPECT_EQ(from_file.out.substr(0, from_file.out.find("Next:")),
                  planned.out.substr(0, planned.out.find("Next:")));
    }
    EXPECT_EQ(run_refit({"simulate", path("plan.json"), "--method", "direct"}).code, 2);
}

TEST_F(Simulate, TellsThatAPlanIsOfAnotherJob) {
    ASSERT_EQ(run_refit({"plan", "reshard-two-domains", "--method", "striped", "-O", path("plan.json")}).code,
              0);
    const auto other = run_refit({"simulate", path("plan.json"), "--scenario", "reshard-one-domain"});
    EXPECT_EQ(other.code, 3);
    EXPECT_NE(other.err.find("[plan-scenario]"), std::string::npos) << other.err;
    const auto none = run_refit({"simulate", path("plan.json"), "--scenario", "no-such"});
    EXPECT_EQ(none.code, 3);
    // Faster NICs are another cluster for the same plan: that is what the flags are for.
    const auto seconds = [&](std::vector<std::string> words) {
        return json_of(std::move(words)).at("simulation").at("seconds").get<double>();
    };
    EXPECT_LT(seconds({path("plan.json"), "--set", "system.nic=800Gbit/s"}), seconds({path("plan.json")}));
}

// SIGINT while it works, or writes: the program ends by the signal and no file is left.
TEST_F(Simulate, LeavesNoFileWhenInterrupted) {
    const auto trace = path("out.json");
    const auto run = run_program({"timeout",
                                  "-s",
                                  "INT",
                                  "0.05",
                                  REFIT_PROGRAM,
                                  "simulate",
                                  "kimi-k3-gb200",
                                  "--trace",
                                  trace,
                                  "-O",
                                  path("out.txt")});
    EXPECT_EQ(run.code, 124);  // as timeout says it
    EXPECT_EQ(files(), 0U);
}

TEST(SimulateJitter, DrawsRanksAnewWhereAskedTo) {
    const auto run = run_refit({"simulate", "reshard-two-domains", "--jitter", "5%", "--samples", "40", "--seed", "3"});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_NE(run.out.find("  jitter 5 % "), std::string::npos) << run.out;
    const auto json = nlohmann::json::parse(run_refit({"simulate", "reshard-two-domains", "--jitter", "5%", "-o", "json"}).out);
    const auto& jitter = json.at("simulation").at("jitter");
    EXPECT_EQ(jitter.at("links_spread"), 0.05);
    EXPECT_GT(jitter.at("median_seconds"), json.at("simulation").at("seconds"));
    EXPECT_GE(jitter.at("p95_seconds"), jitter.at("median_seconds"));
    for (const auto* bad : {"5", "-1%", "many", "101%", "%"}) {
        const auto refused = run_refit({"simulate", "reshard-two-domains", "--jitter", bad});
        EXPECT_EQ(refused.code, 3) << bad;
        EXPECT_NE(refused.err.find("--jitter"), std::string::npos) << refused.err;
    }
}

TEST(CompareSimulate, ShowsTheSimulatedTimesBesideThePredicted) {
    const auto plain = lines_of(run_refit({"compare", "deepseek-v3-h100"}).out);
    const auto both = lines_of(run_refit({"compare", "deepseek-v3-h100", "--simulate"}).out);
    EXPECT_LE(both.size(), 30U);
    for (const auto& line : both) {
        EXPECT_LE(line.size(), 100U) << line;
    }
    EXPECT_NE(both[5].find("simulated"), std::string::npos) << both[5];
    EXPECT_EQ(plain[5].find("simulated"), std::string::npos) << plain[5];
    const auto json = nlohmann::json::parse(run_refit({"compare", "deepseek-v3-h100", "--simulate", "-o", "json"}).out);
    for (const auto& method : json.at("methods")) {
        EXPECT_EQ(method.at("kind"), "simulate");
        EXPECT_NE(method.at("seconds"), method.at("estimate_seconds"));
        EXPECT_LE(method.at("bound_seconds"), method.at("transfer_seconds"));
    }
}

}  // namespace
}  // namespace refit::testing_cli
