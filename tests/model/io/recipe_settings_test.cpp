// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "drafts.hpp"
#include "refit/io/recipe.hpp"
#include "refit/rules.hpp"
#include "recipes.hpp"
#include "scratch.hpp"

namespace refit::io {
namespace {

using testing_io::count_rule;
using testing_io::described;
using testing_io::library;
using testing_io::mentions;
using testing_io::small;

class RecipeSettings : public testing_io::Scratch {
protected:
    [[nodiscard]] static ScenarioDraft read(const std::string& text) {
        auto draft = read_recipe_text(text, "recipe.yaml", library());
        if (!draft) {
            throw std::runtime_error{described(draft.error())};
        }
        draft->set("system", {"h100-nvl8", DraftField::Kind::kText, Precedence::kFlag, "--system"});
        return *draft;
    }
    [[nodiscard]] static std::string value(const ScenarioDraft& draft, const char* field) {
        const auto* found = draft.find(field);
        return found == nullptr ? "-" : found->text;
    }
};

TEST_F(RecipeSettings, TellTheRulesAllAtOnceWhatTheRecipeAsksFor) {
    const auto draft =
        read(small("virtual_pipeline_model_parallel_size: 2\n"
                   "    pipeline_model_parallel_size: 2\n"
                   "    pipeline_model_parallel_layout: \"Et*12|(t*12|)*2t*12L\"",
                   "vllm_kwargs: {enable_eplb: true}\n    real_quant: true"));
    const auto scenario = resolve(draft, library());
    ASSERT_TRUE(scenario.has_value()) << described(scenario.error());
    std::vector<std::string> broken;
    for (const auto& fault : violations(scenario->rules, scenario->facts)) {
        broken.push_back(fault.rule);
    }
    EXPECT_EQ(broken,
              (std::vector<std::string>{"eplb",
                                        "real-quant",
                                        "pipeline-layout",
                                        "virtual-pipeline"}));
    EXPECT_EQ(draft.find("train.virtual_pipeline")->origin,
              "recipe.yaml:6:43 (policy.megatron_cfg.virtual_pipeline_model_parallel_size)");
}

TEST_F(RecipeSettings, TellTheRulesOfTablesThatCountAsLayers) {
    // 48 layers and two tables on two stages: 25 each, hence 24 and 24 layers.
    const auto scenario = resolve(read(small("pipeline_model_parallel_size: 2\n"
                                             "    account_for_embedding_in_pipeline_split: true\n"
                                             "    account_for_loss_in_pipeline_split: true")),
                                  library());
    ASSERT_TRUE(scenario.has_value()) << described(scenario.error());
    const auto broken = violations(scenario->rules, scenario->facts);
    ASSERT_EQ(broken.size(), 2U);
    EXPECT_EQ(broken[0].rule, "account-for-embedding");
    EXPECT_EQ(broken[1].rule, "account-for-loss");
}

TEST_F(RecipeSettings, SplitTheLayersAsTheirLayoutStringSays) {
    // Four chunks over two stages: the first and third lie on stage 0.
    const auto scenario = resolve(read(small("pipeline_model_parallel_size: 2\n"
                                             "    pipeline_model_parallel_layout: \"Et*10|t*20|t*16|t*2mL\"")),
                                  library());
    ASSERT_TRUE(scenario.has_value()) << described(scenario.error());
    EXPECT_EQ(scenario->train.stage_layers, (std::vector<std::uint32_t>{26, 22}));
    EXPECT_EQ(scenario->train.virtual_stages, 2U);
    EXPECT_EQ(scenario->train.chunk_layers, (std::vector<std::uint32_t>{10, 20, 16, 2}));
}

TEST_F(RecipeSettings, TakeNothingElseOnThePipelineBesideALayoutString) {
    const auto faults = testing_io::faults_of(read(small("pipeline_model_parallel_size: 2\n"
                                                         "    virtual_pipeline_model_parallel_size: 2\n"
                                                         "    account_for_loss_in_pipeline_split: true\n"
                                                         "    pipeline_model_parallel_layout: \"Et*24|t*24L\"")));
    ASSERT_EQ(faults.size(), 2U) << described(faults);
    EXPECT_EQ(faults[0].nearest.value(), (Suggestion{"train.account_for_loss", "false", ""}));
    EXPECT_TRUE(mentions(faults, "train.virtual_pipeline: the layout string has 1 chunk of layers a stage, not 2"))
        << described(faults);
    EXPECT_EQ(faults[1].nearest.value(), (Suggestion{"train.virtual_pipeline", "1", ""}));
}

TEST_F(RecipeSettings, KeepALayoutThatIsAList) {
    const auto draft = read(small("pipeline_model_parallel_layout: [[embedding, decoder], [decoder, loss]]"));
    EXPECT_EQ(value(draft, "train.pipeline.layout"), "[[embedding, decoder], [decoder, loss]]");
    EXPECT_EQ(value(read(small("pipeline_model_parallel_layout: null")), "train.pipeline.layout"), "-");
}

TEST_F(RecipeSettings, TellWeightsThatTrainersKeepInFp8) {
    const std::string kept = "fp8_cfg: {enabled: true, fp8_param: true, fp8_recipe: blockwise}";
    EXPECT_EQ(resolve(read(small(kept, "", "precision: fp8")), library()).value().dtype, Dtype::kFp8);
    // vLLM generates in BF16 unless it is told.
    const auto draft = read(small(kept));
    EXPECT_EQ(value(draft, "train.fp8_param"), "true");
    EXPECT_EQ(value(draft, "train.fp8_recipe"), "blockwise");
    const auto faults = testing_io::faults_of(draft);
    ASSERT_EQ(faults.size(), 1U) << described(faults);
    EXPECT_EQ(faults[0].rule, "dtype-pair");
    auto mended = draft;
    mended.apply(faults[0].nearest.value());
    EXPECT_TRUE(resolve(mended, library()).has_value());
    // FP8 in the arithmetic alone, or nowhere, moves BF16 weights.
    for (const auto* line : {"fp8_cfg: {enabled: true, fp8_param: false, fp8_recipe: blockwise}",
                             "fp8_cfg: {enabled: false, fp8_param: true, fp8_recipe: blockwise}"}) {
        EXPECT_TRUE(resolve(read(small(line)), library()).has_value()) << line;
    }
}

TEST_F(RecipeSettings, TellHowExpertsArePlaced) {
    EXPECT_EQ(value(read(small("", "vllm_kwargs: {expert_placement_strategy: round_robin}")), "generate.expert_placement"),
              "round_robin");
}

TEST_F(RecipeSettings, ReadMxfp8Generation) {
    const auto draft = read(small("", "", "precision: fp8\n      is_mx: true"));
    EXPECT_EQ(value(draft, "generate.dtype"), "fp8");
    EXPECT_EQ(value(draft, "generate.is_mx"), "true");
    EXPECT_EQ(count_rule(testing_io::faults_of(draft), "dtype-pair"), 1U);
}

TEST_F(RecipeSettings, LeaveOtherBackendsToResolving) {
    auto text =
        small("", "backend: sglang\n    sglang_cfg: {tp_size: 4, pp_size: 1, ep_size: 1, dtype: bfloat16}");
    text.replace(text.find("    enabled: true"), 17, "    enabled: no");
    text += "  dtensor_cfg: {_v2: true, tensor_parallel_size: 2, context_parallel_size: 2}\n";
    const auto draft = read(text);
    EXPECT_EQ(value(draft, "train.engine"), "dtensor");
    EXPECT_EQ(value(draft, "train.dtensor"), "true");
    EXPECT_EQ(value(draft, "train.layout"), "tp2.cp2.pp1.ep1.etp1");
    EXPECT_EQ(value(draft, "generate.engine"), "sglang");
    EXPECT_EQ(value(draft, "generate.layout"), "tp4.pp1.ep1");
    const auto faults = testing_io::faults_of(draft);
    EXPECT_EQ(count_rule(faults, "unknown-value"), 2U) << described(faults);
}

TEST_F(RecipeSettings, OfMegatronGenerationComeFromTheTrainersUnlessTheyAreWritten) {
    const auto draft =
        read(small("tensor_model_parallel_size: 2\n    expert_model_parallel_size: 8",
                   "backend: megatron\n    mcore_generation_config: {tensor_model_parallel_size: 4}"));
    EXPECT_EQ(value(draft, "generate.engine"), "megatron");
    EXPECT_EQ(value(draft, "generate.layout"), "tp4.pp1.ep8");
}

TEST_F(RecipeSettings, FollowReferencesUpwardsFromWhereTheyStand) {
    const auto draft = read(
        "cluster: {num_nodes: 2, gpus_per_node: 8}\n"
        "policy:\n"
        "  model_name: Qwen/Qwen3-30B-A3B\n"
        "  precision: float16\n"
        "  megatron_cfg: {enabled: true, tp: 4, tensor_model_parallel_size: \"${.tp}\"}\n"
        "  generation:\n"
        "    colocated: {enabled: false, resources: {num_nodes: 1}}\n"
        "    vllm_cfg: {precision: \"${...precision}\", tensor_parallel_size: \"${...megatron_cfg.tp}\"}\n");
    EXPECT_EQ(value(draft, "generate.dtype"), "float16");
    EXPECT_EQ(value(draft, "generate.layout"), "tp4.pp1.ep1");
    EXPECT_EQ(value(draft, "train.layout"), "tp4.cp1.pp1.ep1.etp1");
}

TEST_F(RecipeSettings, ComeThroughAnchorsAndMergeKeys) {
    const auto draft = read(
        "sizes: &sizes {tensor_model_parallel_size: 4, expert_model_parallel_size: 2}\n"
        "cluster: {num_nodes: 2, gpus_per_node: 8}\n"
        "policy:\n"
        "  model_name: Qwen/Qwen3-30B-A3B\n"
        "  megatron_cfg:\n"
        "    <<: *sizes\n"
        "    enabled: true\n"
        "    expert_model_parallel_size: 8\n"
        "  generation:\n"
        "    colocated: {enabled: false, resources: {num_nodes: 1}}\n");
    EXPECT_EQ(value(draft, "train.layout"), "tp4.cp1.pp1.ep8.etp1");
}

TEST_F(RecipeSettings, LeaveNodesToTeachersAndJudges) {
    const std::string teachers =
        "on_policy_distillation:\n"
        "  enabled: true\n"
        "  teacher_model_by_agent_name: {math: a/b, code: a/b, chat: c/d}\n"
        "  non_colocated_teachers:\n"
        "    enabled: true\n"
        "    default_teacher_cfg: {num_nodes: 1}\n"
        "    teacher_overrides: {chat: {num_nodes: 2}}\n";
    auto text = small();
    text.replace(text.find("num_nodes: 2"), 12, "num_nodes: 8");
    // 8 nodes, of which 1 generates and 1 + 2 teach; math and code share a teacher.
    EXPECT_EQ(value(read(text + teachers), "train.gpus"), "32");
    // With five nodes of judges inside the eight, EP16 fits the 2 · 8 GPUs left; without them 7 · 8 would not
    // do.
    auto judged = text + "env: {nemo_gym: {num_gpu_nodes: 5}}\n";
    judged.replace(judged.find("enabled: true"), 13, "enabled: true\n    expert_model_parallel_size: 16");
    EXPECT_EQ(value(read(judged), "train.gpus"), "16");
    EXPECT_EQ(value(read(text + "env: {nemo_gym: {num_gpu_nodes: 5}}\n"), "train.gpus"), "56");
}

TEST_F(RecipeSettings, SayThatATransportIsNotModelled) {
    EXPECT_EQ(value(read(small("", "refit_transport: nixl")), "note"),
              "the recipe's refit_transport, nixl, is not modelled");
    EXPECT_EQ(value(read(small("", "refit_transport: null")), "note"), "-");
    EXPECT_EQ(value(read(small("", "refit_transport: nccl_reshard")), "note"), "-");
}

TEST_F(RecipeSettings, OfOneNodeShareItsNvlink) {
    const auto draft = read(
        "cluster: {num_nodes: 1, gpus_per_node: 8}\n"
        "policy:\n"
        "  model_name: Qwen/Qwen3-30B-A3B\n"
        "  megatron_cfg: {enabled: true}\n"
        "  generation: {colocated: {enabled: false, resources: {gpus_per_node: 4}}}\n");
    EXPECT_EQ(value(draft, "placement.generation_starts_new_domain"), "false");
    const auto scenario = resolve(draft, library());
    ASSERT_TRUE(scenario.has_value()) << described(scenario.error());
    EXPECT_FALSE(scenario->cluster.placement().generation_starts_new_domain);
    EXPECT_EQ(value(read(small()), "placement.generation_starts_new_domain"), "-");
}

TEST_F(RecipeSettings, OfARecipeThatOnlyTrainsAreRefused) {
    const auto draft = read_recipe_text(
        "cluster: {num_nodes: 1, gpus_per_node: 8}\n"
        "policy: {model_name: Qwen/Qwen3-30B-A3B, megatron_cfg: {enabled: true}}\n",
        "sft.yaml",
        library());
    ASSERT_FALSE(draft.has_value());
    EXPECT_EQ(count_rule(draft.error(), "no-generation"), 1U) << described(draft.error());
    EXPECT_EQ(draft.error()[0].code, ErrorCode::kUnsupported);
}

TEST_F(RecipeSettings, LeaveAMissingModelToAFlag) {
    auto text = small();
    text.replace(text.find("Qwen/Qwen3-30B-A3B"), 18, "null");
    auto draft = read(text);
    EXPECT_EQ(count_rule(testing_io::faults_of(draft), "missing-field"), 1U);
    draft.apply({"model", "qwen3-30b-a3b", ""});
    EXPECT_TRUE(resolve(draft, library()).has_value());
}

TEST_F(RecipeSettings, FromMemoryCannotBeInherited) {
    const auto draft = read_recipe_text("a: 1\ndefaults: base.yaml\n", "text", library());
    ASSERT_FALSE(draft.has_value());
    EXPECT_EQ(draft.error()[0].code, ErrorCode::kUnsupported);
    EXPECT_EQ(draft.error()[0].where, "text:2:11");
}

TEST_F(RecipeSettings, AreRefusedWhereAliasesUnfoldToTooMuch) {
    std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int level = 1; level < 12; ++level) {
        const auto below = "*a" + std::to_string(level - 1);
        text += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [" + below;
        for (int i = 1; i < 10; ++i) {
            text += ", " + below;
        }
        text += "]\n";
    }
    const auto draft = read_recipe_text(text, "laughs.yaml", library());
    ASSERT_FALSE(draft.has_value());
    EXPECT_TRUE(mentions(draft.error(), "unfolds to more than 20000 values")) << described(draft.error());
    // Lists of 11, 111, 1111 and 11111 values fit, with their keys; the fifth of 111111 does not.
    EXPECT_TRUE(draft.error()[0].where.starts_with("laughs.yaml:5:")) << draft.error()[0].where;
}

TEST_F(RecipeSettings, AreRefusedWhereValuesNestTooDeepThroughAliases) {
    std::string text = "a0: &a0 {x: 1}\n";
    for (int level = 1; level < 70; ++level) {
        text += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " {x: *a" +
                std::to_string(level - 1) + "}\n";
    }
    const auto draft = read_recipe_text(text, "deep.yaml", library());
    ASSERT_FALSE(draft.has_value());
    EXPECT_TRUE(mentions(draft.error(), "nest deeper than 64 levels")) << described(draft.error());
}

TEST_F(RecipeSettings, AreRefusedAboveOneMebibyteOrManyFiles) {
    EXPECT_EQ(read_recipe_text(std::string((1U << 20U) + 1, ' '), "large", library()).error()[0].rule,
              "too-large");
    // Each file names the next one twice: 2^10 readings.
    for (int i = 0; i < 10; ++i) {
        const auto next = std::to_string(i + 1) + ".yaml";
        static_cast<void>(write(std::to_string(i) + ".yaml", "defaults: [" + next + ", " + next + "]\n"));
    }
    static_cast<void>(write("10.yaml", "a: 1\n"));
    const auto draft = read_recipe(path("0.yaml"), library());
    ASSERT_FALSE(draft.has_value());
    EXPECT_TRUE(mentions(draft.error(), "more than 64 files")) << described(draft.error());
    static_cast<void>(write("device.yaml", "defaults: /dev/zero\n"));
    EXPECT_EQ(read_recipe(path("device.yaml"), library()).error()[0].code, ErrorCode::kIo);
}

}  // namespace
}  // namespace refit::io
