// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace refit::testing_cli {
namespace {

using Json = nlohmann::json;

Json plan_json(const std::string& scenario, const std::string& method) {
    const auto run = run_refit({"plan", scenario, "--method", method, "-o", "json"});
    EXPECT_EQ(run.code, 0) << run.err;
    return Json::parse(run.out);
}

class PlanMethods : public testing::TestWithParam<const char*> {};

TEST_P(PlanMethods, HaveTheSameBytesAsCompare) {
    const auto plan = plan_json("qwen3-235b-h100", GetParam());
    const auto compared = Json::parse(run_refit({"compare", "qwen3-235b-h100", "--method", GetParam(), "-o", "json"}).out);
    std::uint64_t network = 0;
    std::uint64_t nvlink = 0;
    for (const auto& rank : plan.at("ranks")) {
        network += rank.at("network_sent_bytes").get<std::uint64_t>();
        nvlink += rank.at("nvlink_sent_bytes").get<std::uint64_t>();
    }
    const auto& method = compared.at("methods").at(0);
    EXPECT_EQ(network, method.at("network_bytes").get<std::uint64_t>());
    EXPECT_EQ(nvlink, method.at("nvlink_bytes").get<std::uint64_t>());
    EXPECT_EQ(plan.at("methods"), compared.at("methods"));
    EXPECT_GE(plan.at("certificate").at("ratio").get<double>(), 1.0 - 1e-9);
    EXPECT_LE(plan.at("certificate").at("port_seconds").get<double>(),
              method.at("transfer_seconds").get<double>() * (1.0 + 1e-9));
}

INSTANTIATE_TEST_SUITE_P(All, PlanMethods,
                         testing::Values("gather-broadcast", "hybrid", "direct", "striped", "optimal"),
                         [](const auto& row) {
                             std::string name = row.param;
                             std::erase(name, '-');
                             return name;
                         });

TEST(PlanScenario, OptimalIsWithinOnePercentOfTheBoundOnEveryShippedOne) {
    for (const auto& name : shipped_scenarios()) {
        EXPECT_LE(plan_json(name, "optimal").at("certificate").at("ratio").get<double>(), 1.01) << name;
    }
}

TEST(PlanScenario, FitsATerminalOf80Columns) {
    for (const char* scenario : {"deepseek-v3-h100", "deepseek-v3-gb200", "reshard-one-domain"}) {
        for (const char* method : {"optimal", "hybrid"}) {
            const auto run = run_refit({"plan", scenario, "--method", method});
            EXPECT_EQ(run.code, 0) << run.err;
            for (const auto& line : lines_of(run.out)) {
                EXPECT_LE(line.size(), 80U) << line;
            }
        }
    }
}

TEST(PlanScenario, WritesTheSameFileEachTimeAndInTwoEncodings) {
    const auto folder = std::filesystem::path{testing::TempDir()};
    const auto text = (folder / "plan.json").string();
    const auto again = (folder / "again.json").string();
    const auto cbor = (folder / "plan.cbor").string();
    for (const auto& file : {text, again, cbor}) {
        const auto run = run_refit({"plan", "reshard-two-domains", "-O", file});
        EXPECT_EQ(run.code, 0) << run.err;
        EXPECT_NE(run.out.find("certificate"), std::string::npos);
    }
    const auto read = [](const std::string& file) {
        std::ifstream stream{file, std::ios::binary};
        return std::string{std::istreambuf_iterator<char>{stream}, {}};
    };
    EXPECT_EQ(read(text), read(again));
    EXPECT_EQ(Json::parse(read(text)), Json::from_cbor(read(cbor)));
}

TEST(PlanScenario, ExplainsRanksAndTensors) {
    const auto rank = run_refit({"plan", "deepseek-v3-h100", "--explain", "31"});
    EXPECT_NE(rank.out.find("trainer 31, rank 31, in NVLink domain 3, stage 1"), std::string::npos) << rank.out;
    EXPECT_NE(rank.out.find("the only holder"), std::string::npos);
    const auto tensor = run_refit({"plan", "deepseek-v3-h100", "--explain", "q_a_proj"});
    EXPECT_NE(tensor.out.find("wanted by whole on 256 of the generators"), std::string::npos) << tensor.out;
    const auto wrong = run_refit({"plan", "deepseek-v3-h100", "--explain", "q_a_prj"});
    EXPECT_EQ(wrong.code, 3);
    EXPECT_NE(wrong.err.find("the nearest is 'q_a_proj'"), std::string::npos) << wrong.err;
    EXPECT_EQ(run_refit({"plan", "deepseek-v3-h100", "--explain", "512"}).code, 3);
}

TEST(PlanScenario, IsProvenByCheckOrRefused) {
    const auto file = (std::filesystem::path{testing::TempDir()} / "checked.json").string();
    ASSERT_EQ(run_refit({"plan", "qwen3-235b-h100", "-O", file}).code, 0);
    const auto good = run_refit({"check", file});
    EXPECT_EQ(good.code, 0) << good.err;
    EXPECT_NE(good.out.find("every element once"), std::string::npos) << good.out;
    std::ifstream stream{file, std::ios::binary};
    const std::string text{std::istreambuf_iterator<char>{stream}, {}};
    std::ofstream{file, std::ios::binary} << text.substr(0, text.size() / 2);
    const auto cut = run_refit({"check", file});
    EXPECT_EQ(cut.code, 3);
}

TEST(PlanScenario, RefusesWhatItCannotWriteOrPlan) {
    EXPECT_EQ(run_refit({"plan", "reshard-two-domains", "-O", "plan.txt"}).code, 3);
    EXPECT_EQ(run_refit({"plan", "reshard-two-domains", "--method", "direct", "--method", "striped"}).code, 2);
    EXPECT_EQ(run_refit({"plan"}).code, 2);
    EXPECT_EQ(run_refit({"plan", "reshard-two-domains", "-o", "md"}).code, 2);
    // The engine's rules forbid generation PP for the bulk path.
    EXPECT_EQ(run_refit({"plan", "deepseek-v3-h100", "--generate", "tp16.pp2", "--method", "hybrid"}).code, 4);
}

TEST(PlanScenario, GivesMemoryByStageAndCause) {
    const auto memory = plan_json("deepseek-v3-h100", "hybrid").at("memory");
    for (const auto* side : {"train", "generation"}) {
        std::uint64_t most = 0;
        for (const auto& stage : memory.at(side).at("stages")) {
            std::uint64_t sum = 0;
            for (const auto& use : stage.at("uses")) {
                sum += use.at("bytes").get<std::uint64_t>();
            }
            EXPECT_EQ(stage.at("bytes"), sum);
            most = std::max(most, sum);
        }
        EXPECT_EQ(memory.at(side).at("worst").at("bytes"), most);
    }
    EXPECT_TRUE(memory.at("packs").at("agree").get<bool>());
    EXPECT_TRUE(plan_json("deepseek-v3-h100", "direct").at("memory").at("packs").is_null());
    const auto run = run_refit({"plan", "deepseek-v3-h100", "--method", "hybrid"});
    EXPECT_NE(run.out.find("  train memory  "), std::string::npos) << run.out;
    EXPECT_NE(run.out.find("  gen. memory   "), std::string::npos) << run.out;
}

TEST(PlanScenario, WarnsWherePacksOfUnlikeGpusDisagree) {
    const std::vector<std::string> unlike{"deepseek-v3-h100", "--set", "system.train=h200-nvl8", "--set", "system.generate=h100-nvl8"};
    const auto with = [&](std::vector<std::string> words, const std::vector<std::string>& more = {}) {
        words.insert(words.end(), unlike.begin(), unlike.end());
        words.insert(words.end(), more.begin(), more.end());
        return run_refit(words);
    };
    const auto compared = with({"compare"});
    EXPECT_EQ(compared.code, 0);
    EXPECT_NE(compared.err.find("warning: gather-broadcast: trainers pack"), std::string::npos) << compared.err;
    EXPECT_LE(lines_of(compared.out).size(), 30U) << compared.out;
    for (const auto& line : lines_of(compared.out)) {
        EXPECT_LE(line.size(), 100U) << line;
    }
    const auto checked = with({"check"});
    EXPECT_EQ(checked.code, 0);
    EXPECT_NE(checked.err.find("warning: gather-broadcast: trainers pack"), std::string::npos) << checked.err;
    // The cure that it offers.
    EXPECT_NE(checked.err.find("NRL_REFIT_BUFFER_MEMORY_RATIO=0.0632"), std::string::npos) << checked.err;
    EXPECT_EQ(with({"check"}, {"--set", "engine.options.NRL_REFIT_BUFFER_MEMORY_RATIO=0.0632"}).err, "");
}

TEST(PlanScenario, MarksVariantsThatNoEngineRuns) {
    const auto run = run_refit({"compare", "deepseek-v3-h100", "--set", "engine.options.broadcast_root=each-pp-stage"});
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_NE(run.out.find("gather-and-broadcast ?"), std::string::npos) << run.out;
    const auto refused = run_refit({"compare", "deepseek-v3-h100", "--set", "engine.options.broadcast_root=each-stage"});
    EXPECT_EQ(refused.code, 3) << refused.err;
    EXPECT_NE(refused.err.find("each-pp-stage"), std::string::npos) << refused.err;
    const auto unknown = run_refit({"compare", "deepseek-v3-h100", "--set", "engine.options.broadcast_rot=trainer-0"});
    EXPECT_NE(unknown.err.find("broadcast_root"), std::string::npos) << unknown.err;
}

}  // namespace
}  // namespace refit::testing_cli
