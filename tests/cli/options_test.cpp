// SPDX-License-Identifier: Apache-2.0
// Options, environment, files and scripts.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "../model/io/scratch.hpp"
#include "program.hpp"

namespace refit::testing_cli {
namespace {

namespace fs = std::filesystem;

TEST(Help, FitsAboutOneScreen) {
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--help"},
                                                      {"compare", "--help"},
                                                      {"explain", "--help"},
                                                      {"check", "--help"},
                                                      {"show", "--help"},
                                                      {"membership", "--help"}}) {
        const auto outcome = run_refit(arguments);
        EXPECT_EQ(outcome.code, 0);
        EXPECT_EQ(outcome.err, "");
        const auto lines = lines_of(outcome.out);
        EXPECT_LE(lines.size(), 50U);
        EXPECT_NE(outcome.out.find("Examples:"), std::string::npos);
    }
}

TEST(Help, VersionIsOneLine) {
    const auto outcome = run_refit({"--version"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(lines_of(outcome.out).size(), 1U);
    EXPECT_TRUE(outcome.out.starts_with("refit ")) << outcome.out;
}

TEST(Options, MethodReshardGivesHybridAlone) {
    for (const char* name : {"reshard", "hybrid", "reshard,hybrid"}) {
        const auto report = compare_json({"deepseek-v3-h100", "--method", name});
        ASSERT_EQ(report.at("methods").size(), 1U) << name;
        EXPECT_EQ(report.at("methods").front().at("method"), "hybrid");
        EXPECT_TRUE(report.at("speedup").is_null());
    }
}

TEST(Options, ListsDoNotTakeTheNextWord) {
    const auto report = compare_json({"--method", "direct", "qwen3-235b-h100"});
    EXPECT_EQ(report.at("scenario").at("name"), "qwen3-235b-h100");
    EXPECT_EQ(
        compare_json({"qwen3-235b-h100", "--method", "direct", "--method", "striped"}).at("methods").size(),
        2U);
}

TEST(Options, StepsShareTheLastUnit) {
    const auto steps = compare_json({"qwen3-235b-h100", "--step-time", "60,120s"}).at("steps");
    ASSERT_EQ(steps.size(), 2U);
    EXPECT_EQ(steps[0].at("seconds"), 60.0);
    EXPECT_EQ(steps[1].at("seconds"), 120.0);
}

TEST(Options, LaterFlagsOverrideEarlierOnes) {
    const auto report = compare_json({"qwen3-235b-h100",
                                      "--gen-gpus",
                                      "64",
                                      "--gen-gpus",
                                      "256",
                                      "--set",
                                      "engine.rules=2026-08",
                                      "--set",
                                      "placement.gpus_used_per_domain=4"});
    EXPECT_EQ(report.at("scenario").at("generate").at("layout"), "tp8.dp32");
    EXPECT_EQ(report.at("scenario").at("engine").at("rules"), "2026-08");
    EXPECT_EQ(report.at("scenario").at("placement").at("train_gpus_per_domain"), 4);
}

TEST(Options, TakeAModelByItsHubName) {
    EXPECT_EQ(compare_json({"deepseek-v3-h100", "--model", "deepseek-ai/DeepSeek-V3"}).at("model").at("id"),
              "deepseek-v3");
}

TEST(Options, ReplaceAScenarioAltogether) {
    const auto report = compare_json({"--model",
                                      "qwen3-30b-a3b",
                                      "--train",
                                      "pp2.ep8@32",
                                      "--generate",
                                      "tp2@16",
                                      "--system",
                                      "h100-nvl8"});
    EXPECT_EQ(report.at("scenario").at("train").at("layout"), "pp2.ep8");
    EXPECT_EQ(report.at("scenario").at("generate").at("gpus"), 16);
}

std::string system_of(const nlohmann::json& report) {
    return report.at("scenario").at("system").at("train");
}

TEST(Environment, OverridesTheFileAndAFlagOverridesIt) {
    Setting setting;
    setting.environment = {{"REFIT_SYSTEM", "gb200-nvl72"}};
    EXPECT_EQ(system_of(compare_json({"qwen3-235b-h100"})), "h100-nvl8");
    EXPECT_EQ(system_of(compare_json({"qwen3-235b-h100"}, setting)), "gb200-nvl72");
    EXPECT_EQ(system_of(compare_json({"qwen3-235b-h100", "--system", "b200-nvl8"}, setting)), "b200-nvl8");
}

TEST(Environment, IsNamedInAFault) {
    Setting setting;
    setting.environment = {{"REFIT_SYSTEM", "gb200"}};
    const auto outcome = run_refit({"compare", "qwen3-235b-h100"}, setting);
    EXPECT_EQ(outcome.code, 3);
    EXPECT_NE(outcome.err.find("REFIT_SYSTEM"), std::string::npos) << outcome.err;
}

TEST(Environment, IsNamedByPrintConfig) {
    Setting setting;
    setting.environment = {{"REFIT_GEN_GPUS", "64"}};
    const auto outcome =
        run_refit({"compare", "qwen3-235b-h100", "--train-gpus", "256", "--print-config"}, setting);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const auto lines = lines_of(outcome.out);
    const auto has = [&](const char* field, const char* value, const char* origin) {
        return std::ranges::any_of(lines, [&](const std::string& line) {
            return line.starts_with(field) && line.find(value) != std::string::npos && line.ends_with(origin);
        });
    };
    EXPECT_TRUE(has("generate.gpus", "= 64", "# REFIT_GEN_GPUS")) << outcome.out;
    EXPECT_TRUE(has("train.gpus", "= 256", "# --train-gpus")) << outcome.out;
    EXPECT_TRUE(has("model", "= qwen3-235b-a22b", "# qwen3-235b-h100.json: /model")) << outcome.out;
    EXPECT_TRUE(has("# system.nic", "default", "400Gbit/s")) << outcome.out;
}

class Files : public testing_io::Scratch {
protected:
    [[nodiscard]] Setting here() const {
        Setting setting;
        setting.folder = path("");
        return setting;
    }
    [[nodiscard]] std::vector<std::string> listing() const {
        std::vector<std::string> names;
        for (const auto& file : fs::directory_iterator{path("")}) {
            names.push_back(file.path().filename().string());
        }
        std::ranges::sort(names);
        return names;
    }
};

TEST_F(Files, DataFolderWithoutDataIsFileTrouble) {
    Setting setting;
    setting.environment = {{"REFIT_DATA", path("").string()}};
    auto outcome = run_refit({"compare", "qwen3-235b-h100"}, setting);
    EXPECT_EQ(outcome.code, 6);
    EXPECT_NE(outcome.err.find("REFIT_DATA"), std::string::npos) << outcome.err;
    fs::create_directories(path("models"));
    fs::create_directories(path("systems"));
    outcome = run_refit({"compare", "qwen3-235b-h100"}, setting);
    EXPECT_EQ(outcome.code, 6) << outcome.err;
    EXPECT_EQ(outcome.err.find("''"), std::string::npos) << outcome.err;
}

TEST_F(Files, ThatAreMissingAreFileTrouble) {
    for (const char* name : {"no.json", "no.yaml", "./no", "."}) {
        const auto outcome = run_refit({"compare", name}, here());
        EXPECT_EQ(outcome.code, 6) << outcome.err;
        EXPECT_NE(outcome.err.find(name), std::string::npos) << outcome.err;
    }
    EXPECT_EQ(run_refit({"compare", "qwen3-235b-h100", "--system", "no.json"}, here()).code, 6);
    EXPECT_EQ(run_refit({"compare", "qwen3-235b-h100", "--model", "./no"}, here()).code, 6);
}

TEST_F(Files, WithoutAnEndingNeedADot) {
    fs::copy_file(fs::path{REFIT_DATA_DIR} / "scenarios" / "reshard-one-domain.json", path("mine"));
    const auto outcome = run_refit({"compare", "mine"}, here());
    EXPECT_EQ(outcome.code, 3);
    EXPECT_NE(outcome.err.find("./mine"), std::string::npos) << outcome.err;
    EXPECT_EQ(run_refit({"compare", "./mine"}, here()).code, 0);
}

// Each breaks one value of a shipped file; all are refused with the file and the field.
TEST_F(Files, OfSystemsAndEnginesAreRefusedForBadValues) {
    const auto shipped = [](const char* name) {
        return nlohmann::json::parse(file_text(fs::path{REFIT_DATA_DIR} / name));
    };
    struct Mistake {
        const char* flag;
        const char* pointer;
        nlohmann::json value;
    };
    const std::vector<Mistake> mistakes{{"--system", "/nic", 400},
                                        {"--system", "/nic/source", 5},
                                        {"--system", "/nic/unit", "gb/s"},
                                        {"--system", "/nic/kind", "guess"},
                                        {"--system", "/nvlink/low", 500},
                                        {"--system", "/gpus_per_node", 0},
                                        {"--system", "/architecture", "volta"},
                                        {"--engine", "/constants/nic_efficiency/low", 0},
                                        {"--engine", "/constants/call_cost/identified_by", {1}},
                                        {"--engine", "/constants/call_cost/value", nullptr},
                                        {"--engine", "/options/NRL_REFIT_NUM_STREAMS/value", -1},
                                        {"--engine", "/options/NRL_REFIT_NUM_BUFFERS/value", 1e30}};
    for (const auto& [flag, pointer, value] : mistakes) {
        const std::string pointed{pointer};
        auto json =
            shipped(std::string{flag} == "--system" ? "systems/h100-nvl8.json" : "engines/nemo-rl.json");
        json.at(nlohmann::json::json_pointer{pointed}) = value;
        static_cast<void>(write("own.json", json.dump()));
        const auto outcome = run_refit({"compare", "qwen3-235b-h100", flag, "own.json"}, here());
        EXPECT_EQ(outcome.code, 3) << pointed << "\n" << outcome.err;
        const auto depth = pointed.starts_with("/constants") || pointed.starts_with("/options") ? 2 : 1;
        std::size_t end = 0;
        for (int i = 0; i < depth; ++i) {
            end = pointed.find('/', end + 1);
        }
        EXPECT_NE(outcome.err.find("own.json: " + pointed.substr(0, end)), std::string::npos)
            << pointed << "\n"
            << outcome.err;
    }
}

TEST_F(Files, AreWrittenWhole) {
    const auto printed = run_refit({"compare", "qwen3-235b-h100", "-o", "csv"});
    static_cast<void>(write("old.csv", "something else"));
    const auto outcome = run_refit({"compare", "qwen3-235b-h100", "-o", "csv", "-O", "old.csv"}, here());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(file_text(path("old.csv")), printed.out);
    EXPECT_EQ(listing(), std::vector<std::string>{"old.csv"});
}

TEST_F(Files, AreLeftAloneByARefusal) {
    static_cast<void>(write("old.csv", "something else"));
    EXPECT_EQ(run_refit({"compare", "qwen3-235b-h100", "--generate", "tp3", "-O", "old.csv"}, here()).code,
              4);
    EXPECT_EQ(file_text(path("old.csv")), "something else");
    EXPECT_EQ(listing(), std::vector<std::string>{"old.csv"});
}

TEST_F(Files, ThatCannotBeWrittenLeaveNothing) {
    fs::create_directories(path("folder"));
    static_cast<void>(write("file", ""));
    for (const char* name : {"no/such.csv", "folder", "file/below.csv"}) {
        const auto outcome = run_refit({"compare", "qwen3-235b-h100", "-O", name}, here());
        EXPECT_EQ(outcome.code, 6) << outcome.err;
        EXPECT_EQ(outcome.out, "");
        EXPECT_NE(outcome.err.find(name), std::string::npos) << outcome.err;
    }
    EXPECT_EQ(listing(), (std::vector<std::string>{"file", "folder"}));
    EXPECT_TRUE(fs::is_empty(path("folder")));
}

TEST_F(Files, InAFolderWithoutPermissionLeaveNothing) {
    if (::geteuid() == 0) {
        GTEST_SKIP() << "root may write everywhere";
    }
    fs::create_directories(path("closed"));
    fs::permissions(path("closed"), fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_EQ(run_refit({"compare", "qwen3-235b-h100", "-O", "closed/x.csv"}, here()).code, 6);
    EXPECT_TRUE(fs::is_empty(path("closed")));
    fs::permissions(path("closed"), fs::perms::owner_all);
}

TEST_F(Files, BehindALinkAreWrittenAndTheLinkStays) {
    static_cast<void>(write("target.csv", ""));
    fs::create_symlink("target.csv", path("link.csv"));
    EXPECT_EQ(run_refit({"compare", "qwen3-235b-h100", "-o", "csv", "-O", "link.csv"}, here()).code, 0);
    EXPECT_TRUE(fs::is_symlink(path("link.csv")));
    EXPECT_TRUE(file_text(path("target.csv")).starts_with("method,"));
}

TEST_F(Files, ThatArePipesAreWrittenAndStay) {
    ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    const int reader = ::open(path("pipe").c_str(), O_RDWR | O_NONBLOCK);
    ASSERT_GE(reader, 0);
    EXPECT_EQ(run_refit({"compare", "qwen3-235b-h100", "-o", "csv", "-O", "pipe"}, here()).code, 0);
    std::string text(65536, '\0');
    EXPECT_GT(::read(reader, text.data(), text.size()), 0);
    EXPECT_TRUE(text.starts_with("method,"));
    ::close(reader);
    EXPECT_TRUE(fs::is_fifo(path("pipe")));
}

TEST(Stdout, ThatIsFullOrClosedIsFileTrouble) {
    Setting full;
    full.stdout_file = "/dev/full";
    Setting closed;
    closed.has_stdout = false;
    for (const auto& setting : {full, closed}) {
        EXPECT_EQ(run_refit({"compare", "qwen3-235b-h100"}, setting).code, 6);
        EXPECT_EQ(run_refit({"compare", "qwen3-235b-h100", "-o", "json"}, setting).code, 6);
        EXPECT_EQ(run_refit({"--help"}, setting).code, 6);
        EXPECT_EQ(run_refit({"--version"}, setting).code, 6);
    }
}

class Recipe : public testing_io::Scratch {
protected:
    void write_base() const {
        static_cast<void>(write("base.yaml", R"(policy:
  model_name: deepseek-ai/DeepSeek-V3
  precision: bfloat16
  megatron_cfg:
    enabled: true
    tensor_model_parallel_size: 1
    pipeline_model_parallel_size: 16
    expert_model_parallel_size: 16
    num_layers_in_first_pipeline_stage: 3
    num_layers_in_last_pipeline_stage: 2
  generation:
    backend: vllm
    colocated:
      enabled: false
      resources: {gpus_per_node: 8, num_nodes: "${shape.generation_nodes}"}
    vllm_cfg: {tensor_parallel_size: 8, precision: auto}
shape: {generation_nodes: 32}
cluster: {gpus_per_node: 8, num_nodes: 2}
)"));
    }
};

// The layout of the shipped scenario, said as NeMo RL says it: 64 nodes of 8, 32 of them for generation by
// TP 32.
TEST_F(Recipe, GivesTheNumbersOfTheScenario) {
    write_base();
    const auto file = write("recipe.yaml", R"(defaults: base.yaml
policy: {generation: {vllm_cfg: {tensor_parallel_size: 32}}}
cluster: {num_nodes: 64}
)");
    auto recipe = compare_json({file.string(), "--system", "h100-nvl8"});
    auto scenario = compare_json({"deepseek-v3-h100"});
    EXPECT_EQ(recipe.at("scenario").at("name"), "recipe");
    for (auto* report : {&recipe, &scenario}) {
        report->at("scenario").erase("name");
        report->at("scenario").erase("published");
        for (auto& method : report->at("methods")) {
            method.erase("published");
        }
    }
    EXPECT_EQ(recipe, scenario);
}

TEST_F(Recipe, IsRefusedForAReferenceThatLeadsNowhere) {
    write_base();
    const auto file =
        write("recipe.yaml", "defaults: base.yaml\ncluster: {num_nodes: \"${oc.env:NODES}\"}\n");
    const auto outcome = run_refit({"compare", file.string(), "--system", "h100-nvl8"});
    EXPECT_EQ(outcome.code, 3);
    EXPECT_NE(outcome.err.find("${oc.env:NODES}"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("recipe.yaml:2:"), std::string::npos) << outcome.err;
}

TEST_F(Recipe, IsRefusedWhereItIsColocated) {
    const auto file = write("recipe.yaml",
                            "policy: {model_name: deepseek-ai/DeepSeek-V3, megatron_cfg: {enabled: "
                            "true}, generation: {backend: vllm}}\ncluster: {num_nodes: 2, gpus_per_node: 8}\n");
    const auto outcome = run_refit({"compare", file.string(), "--system", "h100-nvl8"});
    EXPECT_NE(outcome.code, 0);
    EXPECT_NE(outcome.err.find("[colocated]"), std::string::npos) << outcome.err;
}

TEST(Scripts, AreShellThatParses) {
    for (const char* name : {"run", "test", ".ci/run", ".ci/common.sh"}) {
        const auto outcome = run_program({"bash", "-n", (fs::path{REFIT_SOURCE_DIR} / name).string()});
        EXPECT_EQ(outcome.code, 0) << name << "\n" << outcome.err;
    }
}

}  // namespace
}  // namespace refit::testing_cli
