// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../model/io/scratch.hpp"
#include "program.hpp"

namespace refit::testing_cli {
namespace {

using Json = nlohmann::json;

constexpr const char* kGolden = REFIT_GOLDEN_DIR "/m2n/plans.json";

Json golden() {
    std::ifstream file{kGolden};
    return Json::parse(file);
}

/// The golden record of this name.
Json record_named(const std::string& name) {
    const auto records = golden();
    return *std::ranges::find_if(records, [&](const Json& record) { return record.at("name") == name; });
}

class Plan : public testing_io::Scratch {
protected:
    /// Runs `plan --tensors` on this JSON.
    Outcome plan(const Json& tensors, std::vector<std::string> arguments = {}) {
        const auto file = write("calls.json", tensors.dump());
        arguments.insert(arguments.begin(), {"plan", "--tensors", file.string()});
        return run_refit(arguments);
    }
};

TEST_F(Plan, AnswersTheGoldenListFieldByField) {
    const auto outcome = run_refit({"plan", "--tensors", kGolden, "--method", "m2n", "-o", "json"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(Json::parse(outcome.out), golden());
}

TEST_F(Plan, AnswersARecordByARecord) {
    const auto record = record_named("4to2/split");
    const auto outcome = plan(record, {"-o", "json"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(Json::parse(outcome.out), record);
}

TEST_F(Plan, ExitsWithFourOnlyWhereAllAreRefused) {
    const auto refused = record_named("ep32-tp16dp4/split");
    const auto planned = record_named("4to2/split");
    const auto none = plan(Json::array({refused, refused}), {"-o", "json"});
    EXPECT_EQ(none.code, 4);
    EXPECT_EQ(Json::parse(none.out), Json::array({refused, refused}));
    EXPECT_EQ(plan(Json::array({refused, planned})).code, 0);
    const auto table = plan(refused);
    EXPECT_EQ(table.code, 4);
    EXPECT_NE(table.out.find("refused: destination shard 0 overlaps 32 source shards; M2N takes at most 16"),
              std::string::npos)
        << table.out;
}

TEST_F(Plan, PrintsASummaryWithinEightyColumns) {
    const auto outcome = run_refit({"plan", "--tensors", kGolden});
    EXPECT_EQ(outcome.code, 0);
    for (const auto& line : lines_of(outcome.out)) {
        EXPECT_LE(line.size(), 80U) << line;
    }
    EXPECT_NE(outcome.out.find("46 calls: 42 planned, 4 refused"), std::string::npos);
}

TEST_F(Plan, SaysWhatARecordMoves) {
    EXPECT_EQ(plan(record_named("ep8-tp2dp8-h100/split")).out,
              R"(ep8-tp2dp8-h100/split: 128x768x2048 of 2 B, 402.7 MB
  from  8 shards of axis 0, on ranks 0 to 7
  to    2 shards of axis 1, each on 8 of ranks 8 to 23
  by    path split, node-aware balance, domains of 8

              transfers       bytes   most on one rank
  injection          16    402.7 MB   50.3 MB out, 50.3 MB in
  ring hops           8    402.7 MB   50.3 MB out
  fan-out            48      2.4 GB   151.0 MB out
  on NICs            24    805.3 MB   50.3 MB out, 50.3 MB in

  8 of 8 source ranks send; rank 8 is the busiest and sends 201.3 MB
)");
}

TEST_F(Plan, NamesFileFieldValueAndNearestOfBadInput) {
    auto records = golden();
    records[2]["path"] = "spilt";
    records[5]["source"]["start_rank"] = "zero";
    const auto outcome = plan(records, {"-o", "json"});
    EXPECT_EQ(outcome.code, 3);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find("calls.json: /2/path"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("unknown path 'spilt'; the nearest is 'split'"), std::string::npos);
    EXPECT_NE(outcome.err.find("calls.json: /5/source/start_rank"), std::string::npos);
    EXPECT_NE(outcome.err.find("\"zero\" is not a whole number"), std::string::npos);
}

TEST_F(Plan, LeavesTheOutputFileAloneWhereInputIsBad) {
    const auto file = write("out.json", "before");
    auto record = record_named("4to2/split");
    record.erase("domain_size");
    EXPECT_EQ(plan(record, {"-O", file.string()}).code, 3);
    std::ifstream kept{file};
    std::string text;
    std::getline(kept, text);
    EXPECT_EQ(text, "before");
}

TEST_F(Plan, WritesTheFileThatIsAskedFor) {
    const auto file = path("out.json");
    const auto record = record_named("4to2/split");
    const auto outcome = plan(record, {"-o", "json", "-O", file.string()});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out, "");
    std::ifstream written{file};
    EXPECT_EQ(Json::parse(written), record);
}

TEST_F(Plan, RefusesATruncatedOrAbsentFile) {
    const auto file = write("cut.json", R"([{"name":)");
    EXPECT_EQ(run_refit({"plan", "--tensors", file.string()}).code, 3);
    EXPECT_EQ(run_refit({"plan", "--tensors", "no-such-file.json"}).code, 6);
}

TEST_F(Plan, TakesAMethodItKnowsATableOrJsonAndNoScenarioFields) {
    const auto method = run_refit({"plan", "--tensors", kGolden, "--method", "m3n"});
    EXPECT_EQ(method.code, 3);
    EXPECT_NE(method.err.find("the nearest is 'm2n'"), std::string::npos) << method.err;
    EXPECT_EQ(run_refit({"plan", "--tensors", kGolden, "-o", "csv"}).code, 2);
    EXPECT_EQ(run_refit({"plan", "--tensors", kGolden, "--model", "kimi-k2"}).code, 2);
    EXPECT_EQ(run_refit({"plan"}).code, 2);
}

TEST(CheckM2n, NamesItsRuleSetWhereEveryClassCanMove) {
    const auto outcome = run_refit({"check", "deepseek-v3-h100", "--method", "m2n"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out, "deepseek-v3-h100 can run: m2n (nccl-m2n@0.2)\n");
    const auto both = run_refit({"check", "deepseek-v3-h100", "--method", "hybrid,m2n"});
    EXPECT_EQ(both.out, "deepseek-v3-h100 can run: hybrid, m2n (nemo-rl@2026-11, nccl-m2n@0.2)\n");
}

TEST(CheckM2n, RefusesByLimitAndClassOnlyTheMethodThatIsAsked) {
    EXPECT_EQ(run_refit({"check", "nemotron-ultra-gb200"}).code, 0);
    const auto outcome = run_refit({"check", "nemotron-ultra-gb200", "--method", "m2n"});
    EXPECT_EQ(outcome.code, 4);
    EXPECT_NE(outcome.out.find("[nccl-m2n@0.2]"), std::string::npos);
    EXPECT_NE(outcome.out.find("[MAX_SOURCES]"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("mixer.experts.{expert}.up_proj.weight and 1 more"), std::string::npos)
        << outcome.out;
    const auto json =
        Json::parse(run_refit({"check", "nemotron-ultra-gb200", "--method", "hybrid,m2n", "-o", "json"}).out);
    EXPECT_EQ(json.at("methods")[0].at("method"), "hybrid");
    EXPECT_EQ(json.at("methods")[0].at("runs"), true);
    EXPECT_EQ(json.at("methods")[1].at("method"), "m2n");
    EXPECT_EQ(json.at("methods")[1].at("runs"), false);
}

}  // namespace
}  // namespace refit::testing_cli
