// SPDX-License-Identifier: Apache-2.0
#include "refit/io/recipe.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "drafts.hpp"
#include "recipes.hpp"
#include "scratch.hpp"

namespace refit::io {
namespace {

using testing_io::count_rule;
using testing_io::described;
using testing_io::library;
using testing_io::mentions;
using testing_io::small;

class Recipe : public testing_io::Scratch {
protected:
    [[nodiscard]] Result<ScenarioDraft> read(std::string_view text) const {
        return read_recipe(write("recipe.yaml", text), library());
    }
    [[nodiscard]] Faults faults_of(std::string_view text) const {
        const auto draft = read(text);
        return draft ? Faults{} : draft.error();
    }
    /// The draft as a scenario on `system`, which a recipe does not name.
    [[nodiscard]] Scenario resolved(std::string_view text, const char* system) const {
        auto draft = read(text);
        if (!draft) {
            throw std::runtime_error{described(draft.error())};
        }
        draft->set("system", {system, DraftField::Kind::kText, Precedence::kFlag, "--system"});
        auto scenario = resolve(*draft, library());
        if (!scenario) {
            throw std::runtime_error{described(scenario.error())};
        }
        return *scenario;
    }
};

/// DeepSeek-V3 on 64 nodes of 8, half of them for generation.
constexpr std::string_view kDeepSeek = R"(
policy:
  model_name: deepseek-ai/DeepSeek-V3
  precision: bfloat16
  megatron_cfg:
    enabled: true
    tensor_model_parallel_size: 1
    pipeline_model_parallel_size: 16
    expert_model_parallel_size: 16
    num_layers_in_first_pipeline_stage: 3
    num_layers_in_last_pipeline_stage: 2
    env_vars:
      NRL_REFIT_NUM_BUFFERS: 3
  generation:
    backend: vllm
    colocated:
      enabled: false
      resources:
        num_nodes: 32
        gpus_per_node: 8
    vllm_cfg:
      precision: bfloat16
      tensor_parallel_size: 32
      pipeline_parallel_size: 1
      expert_parallel_size: 1
cluster:
  num_nodes: 64
  gpus_per_node: 8
)";

TEST_F(Recipe, OfDeepSeekV3IsThePublishedScenario) {
    const auto scenario = resolved(kDeepSeek, "h100-nvl8");
    EXPECT_EQ(scenario.name, "recipe");
    EXPECT_EQ(scenario.model.id(), "deepseek-v3");
    EXPECT_EQ(scenario.dtype, Dtype::kBf16);
    const auto published = resolve(library().scenario("deepseek-v3-h100").value(), library()).value();
    EXPECT_EQ(scenario.train, published.train);
    EXPECT_EQ(scenario.generate, published.generate);
    EXPECT_EQ(scenario.engine.options.buffers, 3U);
    EXPECT_EQ(scenario.engine.options.streams, 2U);
}

TEST_F(Recipe, OfQwen3On32NodesIsThePublishedScenario) {
    const auto scenario = resolved(R"(
cluster: {num_nodes: 32, gpus_per_node: 8}
policy:
  model_name: "Qwen/Qwen3-235B-A22B"
  precision: bf16
  megatron_cfg:
    enabled: True
    tensor_model_parallel_size: 4
    pipeline_model_parallel_size: 8
    context_parallel_size: 1
    expert_model_parallel_size: 16
    expert_tensor_parallel_size: 1
    virtual_pipeline_model_parallel_size: null
    pipeline_model_parallel_layout: null
    account_for_loss_in_pipeline_split: false
    num_layers_in_first_pipeline_stage: 11
    num_layers_in_last_pipeline_stage: 11
  generation:
    backend: vllm
    colocated: {enabled: false, resources: {num_nodes: 16, gpus_per_node: 8}}
    vllm_cfg: {precision: auto, tensor_parallel_size: 8}
)",
                                   "h100-nvl8");
    const auto published = resolve(library().scenario("qwen3-235b-h100").value(), library()).value();
    EXPECT_EQ(scenario.train, published.train);
    EXPECT_EQ(scenario.generate, published.generate);
}

/// DeepSeek-V3 on 64 nodes of 4 GB200, jobs in segments of 16 nodes.
constexpr std::string_view kGb200 = R"(
cluster:
  num_nodes: 64
  gpus_per_node: 4
  segment_size: 16
policy:
  model_name: deepseek-ai/DeepSeek-V3-Base
  megatron_cfg:
    enabled: true
    pipeline_model_parallel_size: 8
    expert_model_parallel_size: 16
    num_layers_in_first_pipeline_stage: 7
    num_layers_in_last_pipeline_stage: 6
  generation:
    colocated:
      enabled: false
      resources: {num_nodes: 32}
    vllm_cfg: {tensor_parallel_size: 16}
)";

TEST_F(Recipe, OfGb200UsesSegmentsOfADomain) {
    const auto scenario = resolved(kGb200, "gb200-nvl72");
    EXPECT_EQ(scenario.train.gpus, 128U);  // (64 - 32) · 4.
    EXPECT_EQ(scenario.generate.gpus, 128U);
    EXPECT_EQ(scenario.train.stage_layers, (std::vector<std::uint32_t>{7, 8, 8, 8, 8, 8, 8, 6}));
    EXPECT_EQ(scenario.generate.dp, 8U);
    EXPECT_EQ(scenario.cluster.placement(), (Placement{64, 64, true}));  // 16 · 4.
}

TEST_F(Recipe, OfOneNodeSplitsItsGpus) {
    const auto scenario = resolved(R"(
cluster: {num_nodes: 1, gpus_per_node: 8}
policy:
  model_name: Qwen/Qwen3-30B-A3B
  megatron_cfg: {enabled: true, expert_model_parallel_size: 2}
  generation:
    colocated: {enabled: false, resources: {num_nodes: null, gpus_per_node: 6}}
    vllm_cfg: {tensor_parallel_size: 2}
)",
                                   "h100-nvl8");
    EXPECT_EQ(scenario.generate.gpus, 6U);
    EXPECT_EQ(scenario.generate.dp, 3U);
    EXPECT_EQ(scenario.train.gpus, 2U);
    EXPECT_EQ(scenario.train.ep, 2U);
}

TEST_F(Recipe, TellsWhereEachValueStands) {
    const auto draft = read(kDeepSeek).value();
    const auto file = path("recipe.yaml").string();
    // Line 4 of the text, which begins with an empty line, behind "  precision: ".
    EXPECT_EQ(draft.find("dtype")->origin, file + ":4:14 (policy.precision)");
    EXPECT_EQ(draft.find("generate.gpus")->origin,
              file + ":19:20 (policy.generation.colocated.resources.num_nodes)");
    EXPECT_EQ(draft.find("train.layout")->text, "tp1.cp1.pp16.ep16.etp1");
    EXPECT_EQ(draft.find("model")->precedence, Precedence::kFile);
    EXPECT_EQ(draft.find("system"), nullptr);
}

TEST_F(Recipe, InheritsFromOtherFiles) {
    std::filesystem::create_directories(path("base"));
    const auto base = write("base/base.yaml", kDeepSeek);
    static_cast<void>(write("base/middle.yaml", R"(
defaults: base.yaml
policy:
  generation:
    vllm_cfg: {tensor_parallel_size: 16}
)"));
    constexpr std::string_view kChild = R"(
defaults: [base/middle.yaml]
policy:
  megatron_cfg:
    expert_model_parallel_size: 8
    num_layers_in_last_pipeline_stage: 2
)";
    const auto scenario = resolved(kChild, "h200-nvl8");
    EXPECT_EQ(scenario.train.ep, 8U);
    EXPECT_EQ(scenario.train.pp, 16U);
    EXPECT_EQ(scenario.generate.tp, 16U);
    const auto draft = read(kChild).value();
    // A value that only the base has is placed there.
    EXPECT_EQ(draft.find("dtype")->origin, base.string() + ":4:14 (policy.precision)");
    EXPECT_EQ(draft.find("train.pipeline.last")->origin,
              path("recipe.yaml").string() + ":6:40 (policy.megatron_cfg.num_layers_in_last_pipeline_stage)");
}

TEST_F(Recipe, LaysALaterOfSeveralParentsUponAnEarlierOne) {
    static_cast<void>(write("a.yaml", kDeepSeek));
    static_cast<void>(write("b.yaml", "policy: {generation: {vllm_cfg: {tensor_parallel_size: 64}}}"));
    EXPECT_EQ(resolved("defaults: [a.yaml, b.yaml]", "h100-nvl8").generate.tp, 64U);
    EXPECT_EQ(resolved("defaults: [b.yaml, a.yaml]", "h100-nvl8").generate.tp, 32U);
}

TEST_F(Recipe, ReplacesAMapWholeWhereItSaysSo) {
    static_cast<void>(write("base.yaml", kDeepSeek));
    constexpr std::string_view kChild = R"(
defaults: base.yaml
policy:
  megatron_cfg:
    _override_: true
    enabled: true
    expert_model_parallel_size: 16
)";
    const auto scenario = resolved(kChild, "h200-nvl8");
    EXPECT_EQ(scenario.train.pp, 1U);
    EXPECT_EQ(scenario.train.ep, 16U);
    EXPECT_EQ(scenario.engine.options.buffers, 2U);
    // Without the mark the base's pipeline stays.
    std::string merged{kChild};
    merged.replace(merged.find("_override_: true"), 16, "_override_: false");
    EXPECT_EQ(resolved(merged, "h200-nvl8").train.pp, 16U);
    // A recipe upon this one adds to the map again.
    static_cast<void>(write("child.yaml", kChild));
    EXPECT_EQ(
        resolved("defaults: child.yaml\npolicy: {megatron_cfg: {tensor_model_parallel_size: 4}}", "h200-nvl8")
            .train.pp,
        1U);
}

TEST_F(Recipe, DoesNotChangeAParentThatTwoOthersShare) {
    static_cast<void>(write("base.yaml", kDeepSeek));
    static_cast<void>(
        write("a.yaml", "defaults: base.yaml\npolicy: {megatron_cfg: {expert_model_parallel_size: 4}}"));
    static_cast<void>(
        write("b.yaml", "defaults: base.yaml\npolicy: {generation: {vllm_cfg: {tensor_parallel_size: 16}}}"));
    const auto scenario = resolved("defaults: [a.yaml, b.yaml]", "h200-nvl8");
    // b brings the base's 16 along.
    EXPECT_EQ(scenario.train.ep, 16U);
    EXPECT_EQ(read("defaults: [b.yaml, a.yaml]").value().find("train.layout")->text, "tp1.cp1.pp16.ep4.etp1");
}

TEST_F(Recipe, FollowsReferences) {
    const auto scenario = resolved(R"(
sizes: {tp: 8, both: "${sizes.tp}", shared: {tensor_parallel_size: "${sizes.both}"}}
policy:
  model_name: Qwen/Qwen3-235B-A22B
  precision: ${dtype}
  megatron_cfg:
    enabled: true
    tensor_model_parallel_size: ${sizes.both}
    expert_model_parallel_size: 16
  generation:
    colocated: {enabled: false, resources: {num_nodes: "${cluster.half}"}}
    vllm_cfg: ${sizes.shared}
dtype: float16
cluster: {num_nodes: 4, half: 2, gpus_per_node: 8}
)",
                                   "h100-nvl8");
    EXPECT_EQ(scenario.train.tp, 8U);
    EXPECT_EQ(scenario.generate.tp, 8U);
    EXPECT_EQ(scenario.generate.gpus, 16U);
    EXPECT_EQ(scenario.dtype, Dtype::kFp16);
}

TEST_F(Recipe, RefusesReferencesThatItCannotFollow) {
    const auto file = path("recipe.yaml").string();
    auto faults = faults_of(small("tensor_model_parallel_size: ${mul:2,4}"));
    ASSERT_EQ(faults.size(), 1U) << described(faults);
    EXPECT_EQ(faults[0].code, ErrorCode::kUnsupported);
    EXPECT_EQ(faults[0].rule, "recipe-reference");
    EXPECT_EQ(faults[0].where, file + ":6:33 (policy.megatron_cfg.tensor_model_parallel_size)");
    faults = faults_of(small("tensor_model_parallel_size: ${no.such.key}"));
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].code, ErrorCode::kInvalidInput);
    EXPECT_TRUE(mentions(faults, "there is no no.such.key"));
    for (const auto* text : {"${..........enabled}",
                             "${.}",
                             "x${cluster.num_nodes}",
                             "${a}${b}",
                             "${}",
                             "${cluster.num_nodes",
                             "${a[0]}"}) {
        EXPECT_EQ(count_rule(faults_of(small("tensor_model_parallel_size: \"" + std::string{text} + "\"")),
                             "recipe-reference"),
                  1U)
            << text;
    }
    faults =
        faults_of(small("tensor_model_parallel_size: ${policy.megatron_cfg.tensor_model_parallel_size}"));
    EXPECT_TRUE(mentions(faults, "refers to itself")) << described(faults);
    // What is not read does no harm.
    EXPECT_TRUE(read(small("sequence_length: ${mul:2,4}")).has_value());
}

TEST_F(Recipe, ReadsEnvironmentVariablesOfBothSides) {
    const auto draft = read(small("env_vars: {NRL_REFIT_NUM_STREAMS: 3, PATH: x}",
                                  "",
                                  "env_vars: {NRL_REFIT_BUFFER_MEMORY_RATIO: \"0.04\"}"))
                           .value();
    EXPECT_EQ(draft.find("engine.options.NRL_REFIT_NUM_STREAMS")->text, "3");
    EXPECT_EQ(draft.find("engine.options.NRL_REFIT_BUFFER_MEMORY_RATIO")->text, "0.04");
    EXPECT_EQ(draft.find("engine.options.NRL_REFIT_NUM_BUFFERS"), nullptr);
}

TEST_F(Recipe, PassesFp8GenerationOnToTheRules) {
    const auto draft = read(small("", "", "precision: fp8")).value();
    EXPECT_EQ(draft.find("generate.dtype")->text, "fp8");
    EXPECT_EQ(count_rule(testing_io::faults_of(draft), "dtype-pair"), 1U);
    EXPECT_EQ(read(small("", "", "precision: auto")).value().find("generate.dtype"), nullptr);
    EXPECT_EQ(read(small("", "", "precision: null")).value().find("generate.dtype"), nullptr);
}

TEST_F(Recipe, NamesLineAndColumnOfASyntaxFault) {
    const auto faults = faults_of("policy:\n  model_name: Qwen\n  megatron_cfg: [}\n");
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].code, ErrorCode::kInvalidInput);
    EXPECT_EQ(faults[0].rule, "yaml-syntax");
    EXPECT_EQ(faults[0].where, path("recipe.yaml").string() + ":3:18");
    const auto indentation = faults_of("policy:\n    model_name: Qwen\n  megatron_cfg: {}\n");
    ASSERT_EQ(indentation.size(), 1U);
    EXPECT_EQ(indentation[0].where, path("recipe.yaml").string() + ":3:3");
}

TEST_F(Recipe, NamesLineAndColumnOfWhatIsNoNumber) {
    const auto file = path("recipe.yaml").string();
    for (const auto* text : {"four", "-4", "4.0", "4x", ".nan", "1e3", "99999999999999999999", "2000000"}) {
        const auto faults = faults_of(small("tensor_model_parallel_size: " + std::string{text}));
        ASSERT_EQ(faults.size(), 1U) << text << "\n" << described(faults);
        EXPECT_EQ(faults[0].rule, "recipe-number");
        EXPECT_EQ(faults[0].where, file + ":6:33 (policy.megatron_cfg.tensor_model_parallel_size)");
        EXPECT_TRUE(mentions(faults, "'" + std::string{text} + "', not a whole number"));
    }
    EXPECT_EQ(count_rule(faults_of(small("tensor_model_parallel_size: [4]")), "recipe-value"), 1U);
    EXPECT_EQ(count_rule(faults_of(small("tensor_model_parallel_size: {a: 4}")), "recipe-value"), 1U);
    EXPECT_EQ(count_rule(faults_of(small("account_for_loss_in_pipeline_split: maybe")), "recipe-flag"), 1U);
}

TEST_F(Recipe, TellsAllFaultsAtOnce) {
    const auto faults = faults_of(
        "cluster: {num_nodes: two}\n"
        "policy:\n"
        "  megatron_cfg: {enabled: true, tensor_model_parallel_size: x}\n"
        "  generation: {colocated: {enabled: 5}, vllm_cfg: {tensor_parallel_size: y}}\n");
    EXPECT_EQ(count_rule(faults, "missing-field"), 1U);  // GPUs of a node.
    EXPECT_EQ(count_rule(faults, "recipe-flag"), 1U);
    EXPECT_EQ(count_rule(faults, "recipe-number"), 3U) << described(faults);
}

TEST_F(Recipe, MustLeaveGpusToTraining) {
    const auto with = [&](const std::string& cluster, const std::string& resources) {
        return faults_of("cluster: {" + cluster +
                         "}\n"
                         "policy:\n"
                         "  model_name: Qwen/Qwen3-30B-A3B\n"
                         "  megatron_cfg: {enabled: true}\n"
                         "  generation: {colocated: {enabled: false, resources: {" +
                         resources + "}}}\n");
    };
    EXPECT_TRUE(with("num_nodes: 2, gpus_per_node: 8", "num_nodes: 1").empty());
    EXPECT_EQ(count_rule(with("num_nodes: 2, gpus_per_node: 8", "num_nodes: 2"), "recipe-gpus"), 1U);
    EXPECT_EQ(count_rule(with("num_nodes: 2, gpus_per_node: 8", ""), "recipe-gpus"), 1U);
    EXPECT_EQ(
        count_rule(with("num_nodes: 2, gpus_per_node: 8", "num_nodes: 1, gpus_per_node: 4"), "recipe-gpus"),
        1U);
    EXPECT_EQ(count_rule(with("num_nodes: 1, gpus_per_node: 8", "gpus_per_node: 8"), "recipe-gpus"), 1U);
    EXPECT_EQ(count_rule(with("num_nodes: 1, gpus_per_node: 8", "num_nodes: 1"), "recipe-gpus"), 1U);
    EXPECT_EQ(count_rule(with("num_nodes: 0, gpus_per_node: 8", "num_nodes: 0"), "recipe-gpus"), 1U);
}

TEST_F(Recipe, LeavesAnUnknownModelToAFlag) {
    auto text = small();
    text.replace(text.find("Qwen/Qwen3-30B-A3B"), 18, "Qwen/Qwen3-31B-A3B");
    auto draft = read(text).value();
    EXPECT_EQ(draft.find("model")->text, "Qwen/Qwen3-31B-A3B");
    draft.set("system", {"h100-nvl8", DraftField::Kind::kText, Precedence::kFlag, "--system"});
    const auto faults = testing_io::faults_of(draft);
    ASSERT_EQ(faults.size(), 1U) << described(faults);
    EXPECT_EQ(faults[0].rule, "unknown-model");
    EXPECT_EQ(faults[0].code, ErrorCode::kInvalidInput);
    EXPECT_EQ(faults[0].where, path("recipe.yaml").string() + ":3:15 (policy.model_name)");
    draft.apply(faults[0].nearest.value());
    EXPECT_TRUE(resolve(draft, library()).has_value());
}

TEST_F(Recipe, RefusesFilesThatAreNoRecipe) {
    EXPECT_EQ(faults_of("").at(0).rule, "recipe-shape");
    EXPECT_EQ(faults_of("- a\n- b\n").at(0).rule, "recipe-shape");
    EXPECT_EQ(faults_of("just text").at(0).rule, "recipe-shape");
    EXPECT_EQ(faults_of("policy: 5").at(0).rule, "missing-field");
    EXPECT_EQ(read_recipe(path("none.yaml"), library()).error()[0].code, ErrorCode::kIo);
}

TEST_F(Recipe, RefusesInheritanceThatGoesNowhere) {
    const auto missing = faults_of("defaults: none.yaml");
    EXPECT_EQ(missing.at(0).code, ErrorCode::kIo);
    EXPECT_EQ(missing.at(0).where, path("none.yaml").string());
    EXPECT_TRUE(mentions(faults_of("defaults: recipe.yaml"), "nest deeper than 16 files"));
    const auto hydra = faults_of("defaults: [{model: llama}]");
    EXPECT_EQ(hydra.at(0).code, ErrorCode::kUnsupported);
    EXPECT_EQ(hydra.at(0).where, path("recipe.yaml").string() + ":1:12");
    static_cast<void>(write("broken.yaml", "a: [\n"));
    EXPECT_TRUE(
        faults_of("defaults: broken.yaml").at(0).where.starts_with(path("broken.yaml").string() + ":"));
}

TEST_F(Recipe, SurvivesDeepAndCircularMaps) {
    std::string deep;
    for (int level = 0; level < 20000; ++level) {
        deep += "[";
    }
    EXPECT_FALSE(read("policy: " + deep).has_value());
    static_cast<void>(write("circle.yaml", "policy: &a\n  generation: *a\n"));
    EXPECT_FALSE(read("defaults: circle.yaml\npolicy: &b\n  generation: *b\n").has_value());
}

}  // namespace
}  // namespace refit::io
