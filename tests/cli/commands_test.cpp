// SPDX-License-Identifier: Apache-2.0
// refit check, refit show, and what README.md says that the program prints.
#include <fstream>
#include <sstream>

#include "program.hpp"

namespace refit::testing_cli {
namespace {

using Json = nlohmann::json;

TEST(Check, OfAPublishedScenarioNamesMethodsAndRules) {
    const auto outcome = run_refit({"check", "deepseek-v3-h100"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out, "deepseek-v3-h100 can run: gather-broadcast, hybrid (nemo-rl@2026-11)\n");
}

TEST(Check, TellsRefusalsOfTheRulesWithACure) {
    const auto outcome = run_refit({"check", "deepseek-v3-h100", "--generate", "tp32.pp2"});
    EXPECT_EQ(outcome.code, 4);
    EXPECT_NE(outcome.out.find("[nemo-rl@2026-11 rule 19]"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("try    --generate tp32.dp8"), std::string::npos) << outcome.out;
    EXPECT_EQ(run_refit({"check", "deepseek-v3-h100", "--generate", "tp32.dp8"}).code, 0);
    EXPECT_EQ(
        run_refit({"check", "deepseek-v3-h100", "--generate", "tp32.pp2", "--method", "gather-broadcast"})
            .code,
        0);
}

TEST(Check, GivesTheSameListAsJson) {
    const auto outcome = run_refit(
        {"check", "deepseek-v3-h100", "--train", "tp3.pp16.ep16", "--generate-dtype", "fp8", "-o", "json"});
    EXPECT_EQ(outcome.code, 4);
    const auto json = Json::parse(outcome.out);
    EXPECT_FALSE(json.at("runs").get<bool>());
    EXPECT_GE(json.at("faults").size(), 5U);
    for (const auto& fault : json.at("faults")) {
        EXPECT_TRUE(fault.at("nearest").is_object()) << fault;
    }
}

TEST(Check, ReadsTheRulesOfTheVersionAsked) {
    EXPECT_EQ(run_refit({"check", "qwen3.8-2.4t-h100"}).code, 0);
    const auto august = run_refit({"check", "qwen3.8-2.4t-h100", "--set", "engine.rules=2026-08"});
    EXPECT_EQ(august.code, 4);
    EXPECT_NE(august.out.find("[nemo-rl@2026-08 rule 18]"), std::string::npos) << august.out;
}

TEST(Show, AModelHasTheReferencesFields) {
    const auto json = Json::parse(run_refit({"show", "model", "kimi-k3", "-o", "json"}).out);
    EXPECT_EQ(json.at("parameters"), 2'779'484'476'000U);
    EXPECT_EQ(json.at("tensors"), 249'756U);
    EXPECT_EQ(json.at("vision_parameters"), 447'358'976U);
    EXPECT_EQ(json.at("ffn_parameters"), 2'723'467'493'376U);
    EXPECT_NEAR(json.at("ffn_fraction").get<double>(), 0.979689, 5e-7);
    EXPECT_EQ(json.at("native_bytes"), 1'560'860'307'200U);
    EXPECT_NEAR(json.at("bulk_fraction").at("nemo-rl-names").get<double>(), 0.0020, 5e-5);
}

TEST(Show, ARankAndALayoutSumUp) {
    const auto rank = Json::parse(run_refit({"show", "rank", "deepseek-v3-h100", "293", "-o", "json"}).out);
    EXPECT_EQ(rank.at("role"), "generate");
    std::uint64_t sum = 0;
    for (const auto& holding : rank.at("holdings")) {
        sum += holding.at("bytes").get<std::uint64_t>();
    }
    EXPECT_EQ(sum, rank.at("bytes").get<std::uint64_t>());
    const auto layout = Json::parse(run_refit({"show", "layout", "deepseek-v3-h100", "-o", "json"}).out);
    EXPECT_EQ(layout.at("generate").at("all_bytes").get<std::uint64_t>(), 256 * sum);
    EXPECT_EQ(run_refit({"show", "rank", "deepseek-v3-h100", "512"}).code, 2);
    EXPECT_EQ(run_refit({"show", "rank", "deepseek-v3-h100"}).code, 2);
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream{text};
    for (std::string line; std::getline(stream, line);) {
        lines.push_back(line);
    }
    return lines;
}

TEST(Check, WritesALineAFaultAsCsvAndMarkdown) {
    const std::vector<std::string> asked{"check", "deepseek-v3-h100", "--generate", "tp32.pp2", "-o"};
    auto words = asked;
    words.emplace_back("csv");
    const auto csv = run_refit(words);
    EXPECT_EQ(csv.code, 4);
    auto lines = lines_of(csv.out);
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0], "rule,message,where,nearest_field,nearest_value");
    EXPECT_EQ(lines[1],
              "generate-pp,generate.pp = 2: generation pipeline parallelism must be 1 [nemo-rl@2026-11 rule "
              "19],generate.pp,"
              "generate.layout,tp32.dp8");
    words.back() = "md";
    lines = lines_of(run_refit(words).out);
    ASSERT_EQ(lines.size(), 3U);
    EXPECT_EQ(lines[0], "| rule | message | where | nearest_field | nearest_value |");
    EXPECT_EQ(lines[1], "|---|---|---|---|---|");
    EXPECT_EQ(lines_of(run_refit({"check", "deepseek-v3-h100", "-o", "csv"}).out).size(), 1U);
    // Commas stand in quotes.
    const auto quoted = run_refit({"check", "deepseek-v3-h100", "--generate", "tp4", "-o", "csv"}).out;
    EXPECT_NE(quoted.find("gpu-memory,\"generate.layout = "), std::string::npos) << quoted;
}

TEST(Check, AsksWhichRefitWithACommandToBeginWith) {
    const auto outcome = run_refit({"check"});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.err.find("which refit?"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("check deepseek-v3-h100"), std::string::npos) << outcome.err;
}

TEST(Show, WritesRowsAsCsvAndMarkdown) {
    const auto json = Json::parse(run_refit({"show", "layout", "deepseek-v3-h100", "-o", "json"}).out);
    for (const auto& [words, columns] : std::vector<std::pair<std::vector<std::string>, std::string>>{
             {{"model", "deepseek-v3"}, "class,shape,dtype,tensors,parameters,bytes"},
             {{"layout", "deepseek-v3-h100"},
              "class,shape,dtype,bytes,train_shards,train_replicas,generate_shards,generate_replicas"},
             {{"rank", "deepseek-v3-h100", "37"},
              "class,box,layers,replicas,class_bytes,class_padding_bytes"}}) {
        std::vector<std::string> command{"show"};
        command.insert(command.end(), words.begin(), words.end());
        command.insert(command.end(), {"-o", "csv"});
        const auto csv = lines_of(run_refit(command).out);
        ASSERT_GT(csv.size(), 10U);
        EXPECT_EQ(csv[0], columns);
        command.back() = "md";
        // Markdown has one line more, under the header.
        EXPECT_EQ(lines_of(run_refit(command).out).size(), csv.size() + 1);
        EXPECT_TRUE(words[0] != "layout" || csv.size() == json.at("classes").size() + 1);
    }
    const std::string file = std::string{REFIT_GOLDEN_DIR} + "/content_maps/vllm.json";
    EXPECT_EQ(run_refit({"show", "maps", file, "-o", "csv"}).code, 2);
}

TEST(Compare, SaysWhereTheTimeOfAReshardGoesThatIsNoFaster) {
    // 32 replicas of each shard pass their stripes on to each other, over one NIC each.
    const auto slower = run_refit({"compare",
                                   "--model",
                                   "qwen3-32b",
                                   "--system",
                                   "h100-nvl8",
                                   "--train",
                                   "tp8@8",
                                   "--generate",
                                   "tp2@64",
                                   "--no-progress"});
    ASSERT_EQ(slower.code, 0) << slower.err;
    EXPECT_NE(slower.out.find("x slower"), std::string::npos) << slower.out;
    EXPECT_NE(slower.out.find("Why: reshard takes"), std::string::npos) << slower.out;
    EXPECT_NE(slower.out.find("s for bulk transfers (busiest sender"), std::string::npos) << slower.out;
    EXPECT_NE(slower.out.find("gather-and-broadcast moves the"), std::string::npos) << slower.out;
    EXPECT_EQ(slower.out.find("and each bulk byte leaves"), std::string::npos) << slower.out;
}

TEST(Show, MapsAnswerRecords) {
    const std::string file = std::string{REFIT_GOLDEN_DIR} + "/content_maps/vllm.json";
    const auto outcome = run_refit({"show", "maps", file, "-o", "json"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(Json::parse(outcome.out).size(), 98U);
    EXPECT_EQ(run_refit({"show", "maps", "no-such-file.json"}).code, 6);
}

TEST(Show, ListsNothingUnknown) {
    EXPECT_EQ(run_refit({"show", "nonsense", "x"}).code, 2);
    EXPECT_EQ(run_refit({"show", "model", "deepsek-v3"}).code, 3);
}

std::string readme() {
    std::ifstream stream{std::string{REFIT_DATA_DIR} + "/../README.md"};
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

TEST(Readme, ShowsWhatTheProgramPrints) {
    Setting called;
    called.environment = {{"REFIT_CALLED_AS", "./run"}};
    const auto text = readme();
    const auto screen = run_refit({"compare", "deepseek-v3-h100"}, called).out;
    EXPECT_NE(text.find("$ ./run\n" + screen + "```"), std::string::npos) << "README.md does not show\n"
                                                                          << screen;
    const auto refusal =
        run_refit({"compare", "deepseek-v3-h100", "--train", "tp3.pp16.ep16", "--generate-dtype", "fp8"},
                  called)
            .err;
    EXPECT_NE(text.find(refusal + "```"), std::string::npos) << "README.md does not show\n" << refusal;
}

TEST(Compare, SaysWhatAnotherEngineDoesOneAfterAnother) {
    const auto text = run_refit({"compare", "deepseek-v3-h100", "--engine", "miles"}).out;
    EXPECT_NE(text.find("Reshard, which miles does not have, would be"), std::string::npos) << text;
    EXPECT_NE(text.find("each pack gathered, sent and\nloaded before the next"), std::string::npos) << text;
    EXPECT_NE(text.find(" + broadcast 29.6 + loading "), std::string::npos) << text;
    EXPECT_EQ(text.find(" hides "), std::string::npos) << text;
    EXPECT_NE(text.find("reshard, miles (hybrid) ?"), std::string::npos) << text;
    EXPECT_NE(text.find("all weights, direct  "), std::string::npos) << text;
}

}  // namespace
}  // namespace refit::testing_cli
