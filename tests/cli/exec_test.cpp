// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace refit {
namespace {

namespace fs = std::filesystem;
using testing_cli::lines_of;
using testing_cli::Outcome;
using testing_cli::run_refit;
using Json = nlohmann::json;

Outcome run_exec(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), REFIT_EXEC_PROGRAM);
    return testing_cli::run_program(arguments);
}

/// A folder of its own that is gone afterwards.
class Exec : public testing::Test {
protected:
    Exec()
        : folder_{fs::temp_directory_path() /
                  ("refit-exec-" + std::to_string(::getpid()) + "-" +
                   testing::UnitTest::GetInstance()->current_test_info()->name())} {
        fs::create_directories(folder_);
    }
    ~Exec() override { fs::remove_all(folder_); }

    [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

    /// A plan of 20 ranks for the teaching matrix with sides of 256 elements.
    [[nodiscard]] std::string small_plan(const std::string& method = "striped") const {
        const auto file = path(method + ".json");
        const auto made = run_refit({"plan",
                                     "reshard-two-domains",
                                     "--model",
                                     "teaching-matrix/256",
                                     "--method",
                                     method,
                                     "-O",
                                     file});
        EXPECT_EQ(made.code, 0) << made.err;
        return file;
    }

    fs::path folder_;
};

Json parsed(const std::string& file) {
    std::ifstream stream{file};
    return Json::parse(stream);
}

/// Text whose lines are no wider than messages may be, without its breaks.
std::string unwrapped(const std::string& text) {
    std::string flat;
    for (const auto& line : lines_of(text)) {
        EXPECT_LE(line.size(), 100U) << line;
        const auto begin = line.find_first_not_of(' ');
        flat += begin == std::string::npos ? "" : " " + line.substr(begin);
    }
    return flat;
}

TEST_F(Exec, MovesAPlanAndSaysThatEveryElementIsVerified) {
    const auto run = run_exec({small_plan(), "--runs", "3"});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_NE(run.out.find("reshard-two-domains, striped: 20 ranks by host, every element verified"),
              std::string::npos)
        << run.out;
    EXPECT_LE(lines_of(run.out).size(), 30U);
    for (const auto& line : lines_of(run.out)) {
        EXPECT_LE(line.size(), 100U) << line;
    }
}

/// 16 generators want parts of the 256 x 256 … elements; the report says how many, of which rank, and how
/// fast.
TEST_F(Exec, ReportsInTheFormOfAPredictionThatCompareLaysBesideIt) {
    const auto measured = path("measured.json");
    ASSERT_EQ(run_exec({small_plan("direct"), "--runs", "3", "-o", "json", "-O", measured}).code, 0);
    const auto report = parsed(measured);
    EXPECT_EQ(report["schema"], "refit.report");
    const auto& method = report["methods"][0];
    EXPECT_EQ(method["kind"], "measured");
    EXPECT_EQ(method["method"], "direct");
    EXPECT_EQ(method["verified"], true);
    EXPECT_EQ(method["ranks"].size(), 20U);
    EXPECT_EQ(method["runs"].size(), 3U);
    std::uint64_t elements = 0;
    std::uint64_t sent = 0;
    for (const auto& rank : method["ranks"]) {
        elements += rank["elements"].get<std::uint64_t>();
        sent += rank["sent_bytes"].get<std::uint64_t>();
    }
    EXPECT_EQ(elements, method["elements"].get<std::uint64_t>());
    EXPECT_EQ(sent, method["delivered_bytes"].get<std::uint64_t>());
    const auto beside = run_refit(
        {"compare", "reshard-two-domains", "--model", "teaching-matrix/256", "--measured", measured});
    EXPECT_EQ(beside.code, 0) << beside.err;
    EXPECT_LE(lines_of(beside.out).size(), 30U);
    EXPECT_NE(beside.out.find("\ndirect "), std::string::npos) << beside.out;
    EXPECT_NE(beside.out.find("elements verified"), std::string::npos);
    const auto json =
        Json::parse(run_refit({"compare", "reshard-two-domains", "--measured", measured, "-o", "json"}).out);
    EXPECT_EQ(json["schema"], "refit.measured_comparison");
    EXPECT_EQ(json["rows"][0]["measured_seconds"], method["seconds"]);
    EXPECT_GT(json["rows"][0]["predicted_seconds"].get<double>(), 0.0);
}

TEST_F(Exec, LeavesAReportThatKnowsTheScenarioWithItsChanges) {
    const auto plan = path("changed.json");
    ASSERT_EQ(run_refit({"plan", "reshard-two-domains", "--model", "qwen3-0.6b/16", "--train", "tp2", "--method",
                         "gather-broadcast", "-O", plan})
                  .code,
              0);
    const auto measured = path("changed-measured.json");
    ASSERT_EQ(run_exec({plan, "--runs", "3", "-o", "json", "-O", measured}).code, 0);
    EXPECT_EQ(parsed(measured)["changes"]["model"], "qwen3-0.6b/16");
    const auto beside = run_refit({"compare", "--measured", measured, "-o", "json"});
    ASSERT_EQ(beside.code, 0) << beside.err;
    const auto named = run_refit({"compare", "reshard-two-domains", "--model", "qwen3-0.6b/16", "--train", "tp2",
                                  "--measured", measured, "-o", "json"});
    EXPECT_EQ(Json::parse(beside.out)["rows"][0]["predicted_seconds"], Json::parse(named.out)["rows"][0]["predicted_seconds"]);
    // Flags win over what the report says.
    const auto flags = run_refit({"compare", "--train", "tp4", "--measured", measured, "-o", "json"});
    const auto other = run_refit({"compare", "reshard-two-domains", "--model", "qwen3-0.6b/16", "--train", "tp4",
                                  "--measured", measured, "-o", "json"});
    EXPECT_EQ(Json::parse(flags.out)["rows"][0]["predicted_seconds"], Json::parse(other.out)["rows"][0]["predicted_seconds"]);
}

TEST_F(Exec, RefusesToPackWhereTheTransportHasNoChoice) {
    const auto refused = run_exec({small_plan("direct"), "--packed"});
    EXPECT_EQ(refused.code, 3);
    EXPECT_NE(refused.err.find("--packed"), std::string::npos) << refused.err;
}

/// One rate for all copies, on one thread.
Json one_rate(double bytes_per_second) {
    Json copies = Json::array();
    for (const auto* pattern : {"gather", "scatter", "repeat"}) {
        copies.push_back({{"pattern", pattern},
                          {"threads", 1},
                          {"run_bytes", 64},
                          {"footprint_bytes", 1048576},
                          {"bytes_per_second", bytes_per_second}});
    }
    return {{"host",
             {{"threads", 1},
              {"wave_seconds", 1e-9},
              {"copy_seconds", 1e-12},
              {"yardstick_seconds", 0.01},
              {"copies", copies}}}};
}

TEST_F(Exec, PredictsByTheRatesOfAProbeAndBySlowdownSince) {
    const auto plan = small_plan("direct");
    const auto ideal = [&](double rate) {
        std::ofstream{path("here.json")} << one_rate(rate);
        const auto run = run_exec({plan, "--system", path("here.json"), "--runs", "3", "-o", "json"});
        EXPECT_EQ(run.code, 0) << run.err;
        const auto method = Json::parse(run.out)["methods"][0];
        return method["predicted_seconds"].get<double>() / method["slowdown"].get<double>();
    };
    // Each of 16 generators wants all 256 x 256 elements of two bytes.
    EXPECT_NEAR(ideal(1e9), 16 * 256 * 256 * 2 / 1e9, 1e-8);
    EXPECT_NEAR(ideal(4e9), 16 * 256 * 256 * 2 / 4e9, 1e-8);
    const auto text = run_exec({plan, "--system", path("here.json"), "--runs", "3"});
    EXPECT_NE(unwrapped(text.out).find("times as long as when probed"), std::string::npos) << text.out;
}

TEST_F(Exec, RefusesRatesWithoutYardstickAndOtherTransportsThanHost) {
    auto rates = one_rate(1e9);
    rates["host"].erase("yardstick_seconds");
    std::ofstream{path("here.json")} << rates;
    const auto old = run_exec({small_plan("direct"), "--system", path("here.json")});
    EXPECT_EQ(old.code, 3);
    EXPECT_NE(old.err.find("\"yardstick_seconds\"; refit-exec probe -O FILE writes it"), std::string::npos) << old.err;
    const auto other = run_exec({small_plan("direct"), "--system", path("here.json"), "--transport", "mpi"});
    EXPECT_EQ(other.code, 3);
    EXPECT_NE(other.err.find("--system"), std::string::npos) << other.err;
}

TEST_F(Exec, EndsWithSevenNamingTheRankWhereOneDiesOrAnElementIsWrong) {
    const auto plan = small_plan();
    const auto died = run_exec({plan, "--inject", "dies:2@0"});
    EXPECT_EQ(died.code, 7);
    EXPECT_NE(died.err.find("rank 2 died in wave 1"), std::string::npos) << died.err;
    EXPECT_NE(died.err.find("still serve the weights from before"), std::string::npos);
    const auto stalled = run_exec({plan, "--inject", "stalls:1", "--deadline", "200ms"});
    EXPECT_EQ(stalled.code, 7);
    EXPECT_NE(stalled.err.find("rank 1 is still in wave 1"), std::string::npos) << stalled.err;
    const auto corrupt = run_exec({plan, "--inject", "corrupts:0"});
    EXPECT_EQ(corrupt.code, 7);
    EXPECT_NE(unwrapped(corrupt.err).find("in place of 0x"), std::string::npos) << corrupt.err;
    EXPECT_TRUE(corrupt.out.empty());
}

/// TP2 with two copies (ranks 0 to 3) to two engines of two (4 to 7).
std::string copied_plan(const std::string& file, const std::string& method, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"plan", "--model", "qwen3-0.6b/16", "--train", "tp2@4", "--generate", "tp2@4", "--system",
                                   "h100-nvl8", "--method", method, "-O", file};
    words.insert(words.end(), more.begin(), more.end());
    const auto made = run_refit(words);
    EXPECT_EQ(made.code, 0) << made.err;
    return file;
}

/// The words of the command that a failure ends with, after the program's name.
std::vector<std::string> offered(const std::string& err) {
    const auto lines = lines_of(err);
    std::istringstream last{lines.empty() ? "" : lines.back()};
    std::vector<std::string> words;
    for (std::string word; last >> word;) {
        words.push_back(word);
    }
    EXPECT_FALSE(words.empty()) << err;
    EXPECT_EQ(words.empty() ? "" : words.front(), "refit-exec") << err;
    return words.empty() ? words : std::vector<std::string>{words.begin() + 1, words.end()};
}

TEST_F(Exec, ResumesWithoutTheRankThatDiedByTheCommandThatTheFailureEndsWith) {
    const std::vector<std::pair<std::string, std::string>> deaths{
        {"gather-broadcast", "3"}, {"direct", "6"}, {"striped", "3"}, {"optimal", "6"}};
    for (const auto& [method, rank] : deaths) {
        const auto plan = copied_plan(path("plan.json"), method);
        const auto failed = run_exec({plan, "--runs", "2", "--inject", "dies:" + rank + "@0", "--warmup=0"});
        EXPECT_EQ(failed.code, 7);
        EXPECT_NE(failed.err.find("rank " + rank + " died in wave "), std::string::npos) << failed.err;
        EXPECT_EQ(offered(failed.err),
                  (std::vector<std::string>{plan, "--runs", "2", "--warmup=0", "--resume-without", rank}));
        const auto resumed = run_exec(offered(failed.err));
        EXPECT_EQ(resumed.code, 0) << resumed.err;
        const std::string left = rank == "3" ? "7" : "6";  // Generator 6 takes its engine's other half along.
        EXPECT_NE(resumed.out.find(method + ": " + left + " ranks by host, every element verified"), std::string::npos)
            << resumed.out;
    }
}

TEST_F(Exec, TellsWhoIsLostAndWhoIdlesAndRunsAPlanThatSaysSo) {
    const auto plan = copied_plan(path("plan.json"), "striped");
    const auto report = path("measured.json");
    ASSERT_EQ(run_exec({plan, "--runs", "1", "--resume-without", "3,6", "-o", "json", "-O", report}).code, 0);
    const auto method = parsed(report)["methods"][0];
    EXPECT_EQ(method["lost_ranks"], (Json::array({3, 6})));
    EXPECT_EQ(method["idle_ranks"], (Json::array({7})));
    ASSERT_EQ(method["ranks"].size(), 5U);
    EXPECT_EQ(method["ranks"][4]["rank"], 5);
    EXPECT_EQ(parsed(report)["changes"]["lost"], "3,6");
    EXPECT_EQ(run_refit({"compare", "--measured", report}).code, 0);
    // The same plan, made beforehand; it leaves out what it says, and more where that is asked for.
    const auto made = copied_plan(path("made.json"), "striped", {"--without", "trainer:3,generation:2"});
    EXPECT_EQ(parsed(made)["ranks"]["lost"], (Json::array({3, 6})));
    EXPECT_EQ(parsed(made)["ranks"]["idle"], (Json::array({7})));
    const auto again = Json::parse(run_exec({made, "--runs", "1", "-o", "json"}).out)["methods"][0];
    EXPECT_EQ(again["plan_digest"], method["plan_digest"]);
    const auto fewer = Json::parse(run_exec({made, "--runs", "1", "--resume-without", "0", "-o", "json"}).out)["methods"][0];
    EXPECT_EQ(fewer["lost_ranks"], (Json::array({0, 3, 6})));
    EXPECT_NE(fewer["plan_digest"], method["plan_digest"]);
    EXPECT_EQ(run_exec({made, "--inject", "dies:7@0"}).code, 3);
}

TEST_F(Exec, RefusesToResumeWithoutTheLastHolderAndSaysWhatWouldDo) {
    const auto plan = copied_plan(path("plan.json"), "direct");
    const auto refused = run_exec({plan, "--resume-without", "1,3,4,7"});
    EXPECT_EQ(refused.code, 4);
    EXPECT_TRUE(refused.out.empty());
    EXPECT_NE(refused.err.find("without ranks 1,3 nobody holds elements ["), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("no engine is left to serve: each of the 2 replicas"), std::string::npos);
    EXPECT_NE(refused.err.find("try --resume-without 3,7, once ranks 1,4 are back"), std::string::npos);
    EXPECT_EQ(run_exec({plan, "--resume-without", "3,7", "--runs", "1"}).code, 0);
    EXPECT_EQ(run_exec({plan, "--resume-without", "8"}).code, 3);
    EXPECT_EQ(run_exec({plan, "--resume-without", "x"}).code, 3);
    // A rank whose shards nobody else holds: the failure says that it cannot go on, and why.
    const auto single = path("single.json");
    ASSERT_EQ(run_refit({"plan", "reshard-two-domains", "--model", "teaching-matrix/256", "--method", "direct", "-O", single}).code, 0);
    const auto failed = run_exec({single, "--inject", "dies:2@0"});
    EXPECT_EQ(failed.code, 7);
    EXPECT_NE(failed.err.find("Without 2 it cannot go on: "), std::string::npos) << failed.err;
    EXPECT_NE(unwrapped(failed.err).find("once rank 2 is back"), std::string::npos) << failed.err;
}

TEST_F(Exec, RefusesBeforeAnyWorkWhatCannotBeRun) {
    EXPECT_EQ(run_exec({}).code, 2);
    EXPECT_EQ(run_exec({path("absent.json")}).code, 6);
    EXPECT_EQ(run_exec({small_plan(), "--transport", "hots"}).code, 3);
    EXPECT_EQ(run_exec({small_plan(), "--deadline", "30"}).code, 3);
    EXPECT_EQ(run_exec({small_plan(), "--inject", "dies"}).code, 3);
    EXPECT_EQ(run_exec({small_plan(), "--inject", "dies:20"}).code, 3);
    EXPECT_EQ(run_exec({small_plan(), "-o", "xml"}).code, 2);
    const auto bare = run_exec({REFIT_SOURCE_DIR "/tests/fuzz/seeds/plan/direct.json", "--resume-without", "0"});
    EXPECT_EQ(bare.code, 3);
    EXPECT_NE(bare.err.find("the plan carries no scenario"), std::string::npos) << bare.err;
    EXPECT_EQ(run_exec({small_plan(), "--graphs"}).code, 3);
    EXPECT_EQ(run_exec({small_plan(), "--one-communicator", "--transport", "cuda"}).code, 3);
    const auto shrinks = run_exec({small_plan(), "--shrink", "--transport", "mpi"});
    EXPECT_EQ(shrinks.code, 3);
    EXPECT_NE(unwrapped(shrinks.err).find("only the transport nccl shrinks communicators; mpi was asked for at --shrink"),
              std::string::npos)
        << shrinks.err;
    // What would move made-up values in place of the files'.
    EXPECT_EQ(run_exec({small_plan(), "--data", folder_.string(), "--transport", "cuda"}).code, 3);
}

/// 16 generators that want 8.6 GB each, twice: 265 GiB.
TEST_F(Exec, RefusesWhatMemoryCannotHoldAndSaysWhatWouldFit) {
    if (sysconf(_SC_PHYS_PAGES) * (sysconf(_SC_PAGE_SIZE) >> 20) > 200L << 10) {
        GTEST_SKIP() << "this machine could hold it";
    }
    const auto large = path("large.json");
    ASSERT_EQ(run_refit({"plan", "reshard-two-domains", "--method", "direct", "-O", large}).code, 0);
    const auto refused = run_exec({large});
    EXPECT_EQ(refused.code, 4) << refused.err;
    EXPECT_NE(refused.err.find("a plan for a model of widths divided by"), std::string::npos) << refused.err;
}

/// A model of two layers in the form of a checkpoint: each element is a different number.
void write_checkpoint(const fs::path& folder) {
    std::ofstream{folder / "config.json"}
        << R"({"model_type": "llama", "hidden_size": 16, "num_hidden_layers": 2, "vocab_size": 64,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4, "intermediate_size": 32,
        "tie_word_embeddings": false, "torch_dtype": "bfloat16"})";
    std::vector<std::pair<std::string, std::vector<std::uint64_t>>> tensors{
        {"lm_head.weight", {64, 16}}, {"model.embed_tokens.weight", {64, 16}}, {"model.norm.weight", {16}}};
    for (const std::string layer : {"0", "1"}) {
        const auto prefix = "model.layers." + layer + ".";
        for (const auto& [name, shape] : std::vector<std::pair<std::string, std::vector<std::uint64_t>>>{
                 {"self_attn.q_proj", {16, 16}},
                 {"self_attn.k_proj", {8, 16}},
                 {"self_attn.v_proj", {8, 16}},
                 {"self_attn.o_proj", {16, 16}},
                 {"mlp.gate_proj", {32, 16}},
                 {"mlp.up_proj", {32, 16}},
                 {"mlp.down_proj", {16, 32}},
                 {"input_layernorm", {16}},
                 {"post_attention_layernorm", {16}}}) {
            tensors.emplace_back(prefix + name + ".weight", shape);
        }
    }
    Json header = Json::object();
    std::string data;
    for (const auto& [name, shape] : tensors) {
        std::uint64_t elements = 1;
        for (const auto extent : shape) {
            elements *= extent;
        }
        header[name] = {
            {"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {data.size(), data.size() + 2 * elements}}};
        for (std::uint64_t i = 0; i < elements; ++i) {
            const auto number = data.size() / 2 * 40503U;
            data += static_cast<char>(number & 0xffU);
            data += static_cast<char>(number >> 8U & 0xffU);
        }
    }
    const auto text = header.dump();
    std::ofstream stream{folder / "model.safetensors", std::ios::binary};
    for (std::uint64_t i = 0; i < 8; ++i) {
        stream.put(static_cast<char>(text.size() >> (8 * i) & 0xffU));
    }
    stream << text << data;
}

TEST_F(Exec, MovesARealCheckpointAndFindsWhatArrivedWrong) {
    write_checkpoint(folder_);
    for (const std::string method : {"gather-broadcast", "direct", "striped", "optimal"}) {
        const auto plan = path("plan.json");
        const auto made = run_refit({"plan",
                                     "--model",
                                     folder_.string(),
                                     "--train",
                                     "tp2.pp2@8",
                                     "--generate",
                                     "tp4@8",
                                     "--system",
                                     "h100-nvl8",
                                     "--method",
                                     method,
                                     "-O",
                                     plan});
        ASSERT_EQ(made.code, 0) << made.err;
        const auto run = run_exec({plan, "--data", folder_.string(), "--runs", "1"});
        EXPECT_EQ(run.code, 0) << method << run.err;
        EXPECT_EQ(run_exec({plan, "--data", folder_.string(), "--runs", "1", "--resume-without", "3,4,9"}).code, 0) << method;
        // What trainer 0 gives in the first wave of a gather reaches no generator.
        const auto corrupt =
            run_exec({plan, "--data", folder_.string(), "--runs", "1", "--inject", "corrupts:0"});
        EXPECT_EQ(corrupt.code, method == "gather-broadcast" ? 0 : 7) << method;
    }
    const auto other = run_exec({small_plan(), "--data", folder_.string()});
    EXPECT_EQ(other.code, 3);
    EXPECT_NE(other.err.find("has another shape or width than the plan's tensor"), std::string::npos) << other.err;
}

}  // namespace
}  // namespace refit
