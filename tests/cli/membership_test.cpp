// SPDX-License-Identifier: Apache-2.0
// refit membership, and what docs/membership.md says that it prints.
#include <cstdlib>
#include <fstream>
#include <string>

#include "program.hpp"

namespace refit::testing_cli {
namespace {

using Json = nlohmann::json;

Outcome membership(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "membership");
    return run_refit(arguments);
}

/// 8 replicas of 32 GPUs; a node of 8 takes one along, its 24 other GPUs and 16 new ones make one and
/// leave 8.
TEST(MembershipCommand, PredictsTheExampleWithinAScreen) {
    const auto outcome = membership({"deepseek-v3-h100", "--lose", "1node", "--gain", "2node"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_LE(lines_of(outcome.out).size(), 30U);
    for (const auto& line : lines_of(outcome.out)) {
        EXPECT_LE(line.size(), 100U) << line;
    }
    EXPECT_NE(outcome.out.find("8 replicas of 32 GPUs"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("1 lost, 1 new, tp32.dp8; 8 GPUs idle"), std::string::npos) << outcome.out;
}

/// 256 + 256 GPUs lose one replica of 32. Gather-broadcast has one communicator: of 512 ranks, then 480.
/// Shrink 1.29 + 0.00163 · 512 = 2.12456 s, rebuild 2.6 + 0.00241 · 480 = 3.7568 s; connections add 1.85 s to
/// the first refit. Hybrid has 17: the shrink is 2.12456 + 16 (1.29 + 0.00163 · 272) = 29.85832 s,
/// connections add 17 · 1.85 = 31.45 s.
TEST(MembershipCommand, AddsUpAsTheDocumentSays) {
    const auto json = Json::parse(membership({"deepseek-v3-h100", "--lose", "1node", "-o", "json"}).out);
    EXPECT_EQ(json.at("replicas_after"), 7);
    EXPECT_EQ(json.at("idle_gpus"), 24);
    EXPECT_EQ(json.at("layout_after"), "tp32.dp7");
    const auto seconds = [](const Json& time) { return time.at("seconds").get<double>(); };
    const auto broadcast = method_of(json, "gather-broadcast");
    EXPECT_EQ(broadcast.at("communicators"), 1);
    EXPECT_NEAR(seconds(broadcast.at("ways")[0].at("change")), 3.7568, 1e-6);
    EXPECT_NEAR(seconds(broadcast.at("ways")[1].at("change")), 2.12456, 1e-6);
    EXPECT_NEAR(seconds(broadcast.at("ways")[1].at("lost")), 3.97456, 1e-6);
    EXPECT_EQ(broadcast.at("cheaper"), "shrink-and-grow");
    const auto hybrid = method_of(json, "hybrid");
    EXPECT_EQ(hybrid.at("communicators"), 17);
    EXPECT_NEAR(seconds(hybrid.at("ways")[1].at("change")), 29.85832, 1e-6);
    EXPECT_NEAR(seconds(hybrid.at("ways")[1].at("first_refit")), seconds(hybrid.at("later")) + 31.45, 1e-6);
}

TEST(MembershipCommand, RefitsBeforeAndAfterAreThoseOfCompare) {
    const auto json = Json::parse(
        membership({"qwen3-235b-h100", "--lose", "2node", "--method", "hybrid", "-o", "json"}).out);
    const auto seconds = [](const std::vector<std::string>& words) {
        return method_of(compare_json(words), "hybrid").at("seconds").get<double>();
    };
    const auto hybrid = method_of(json, "hybrid");
    EXPECT_NEAR(hybrid.at("before").at("seconds").get<double>(),
                seconds({"qwen3-235b-h100", "--method", "hybrid"}),
                1e-5);
    // 16 replicas of 8 lose two.
    EXPECT_NEAR(
        hybrid.at("later").at("seconds").get<double>(),
        seconds({"qwen3-235b-h100", "--method", "hybrid", "--gen-gpus", "112", "--generate", "tp8.dp14"}),
        1e-5);
}

TEST(MembershipCommand, HasARowForEachMethodAndWay) {
    const std::vector<std::string> words{"qwen3-235b-h100", "--lose", "1node", "--lose", "1gpu"};
    auto rows = words;
    rows.insert(rows.end(), {"-o", "csv"});
    EXPECT_EQ(lines_of(membership(rows).out).size(), 1U + 5U * 2U);
    rows.back() = "md";
    EXPECT_TRUE(membership(rows).out.starts_with("| method")) << membership(rows).out;
}

TEST(MembershipCommand, RefusesAllFaultsAtOnceWithWhatWorks) {
    const auto outcome =
        membership({"deepseek-v3-h100", "--lose", "100node", "--gain", "1gpu", "--method", "dirct"});
    EXPECT_EQ(outcome.code, 3);
    EXPECT_EQ(outcome.out, "");
    for (const auto* part : {"'direct'", "--lose 28node", "--gain 32gpu"}) {
        EXPECT_NE(outcome.err.find(part), std::string::npos) << part << "\n" << outcome.err;
    }
    EXPECT_EQ(membership({"deepseek-v3-h100", "--lose", "28node"}).code, 0);
    EXPECT_EQ(membership({"deepseek-v3-h100", "--gain", "32gpu"}).code, 0);
}

TEST(MembershipCommand, ExitsAsOtherCommandsDo) {
    EXPECT_EQ(membership({"deepseek-v3-h100"}).code, 2);
    EXPECT_EQ(membership({"--lose", "1node"}).code, 2);
    EXPECT_EQ(membership({"deepseek-v3-h100", "--loose", "1node"}).code, 2);
    EXPECT_EQ(membership({"deepseek-v3-h100", "--lose", "1node", "--without", "300"}).code, 2);
    EXPECT_EQ(membership({"deepseek-v3-h100", "--lose", "8"}).code, 3);
    EXPECT_EQ(membership({"no-such", "--lose", "1node"}).code, 3);
    EXPECT_EQ(membership({"deepseek-v3-h100", "--lose", "32node"}).code, 4);
    EXPECT_EQ(membership({"deepseek-v3-h100", "--gain", "3node"}).code, 4);
    // Two pipeline stages of vLLM: NeMo RL's reshard refuses them.
    EXPECT_EQ(
        membership({"deepseek-v3-h100", "--generate", "tp16.pp2", "--method", "hybrid", "--lose", "1node"})
            .code,
        4);
}

/// REFIT_UPDATE_GOLDEN=1 rewrites the screen; docs/membership.md shows the same.
TEST(MembershipCommand, IsWhatTheDocumentShows) {
    const auto text = membership({"deepseek-v3-h100", "--lose", "1node", "--gain", "2node"}).out;
    const auto golden = std::string{REFIT_GOLDEN_DIR} + "/membership/screen.txt";
    if (std::getenv("REFIT_UPDATE_GOLDEN") != nullptr) {
        std::ofstream{golden} << text;
    }
    EXPECT_EQ(text, file_text(golden));
    EXPECT_NE(file_text(std::string{REFIT_SOURCE_DIR} + "/docs/membership.md").find(text), std::string::npos)
        << text;
}

}  // namespace
}  // namespace refit::testing_cli
