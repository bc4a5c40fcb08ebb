// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include "drafts.hpp"
#include "refit/io/library.hpp"
#include "refit/io/recipe.hpp"

namespace refit::io {
namespace {

using testing_io::count_rule;
using testing_io::described;
using testing_io::faults_of;
using testing_io::library;
using testing_io::mentions;

ScenarioDraft colocated(int nodes, const std::string& megatron, const std::string& generation) {
    auto draft = read_recipe_text("cluster: {num_nodes: " + std::to_string(nodes) +
                                      ", gpus_per_node: 8}\n"
                                      "policy:\n"
                                      "  model_name: Qwen/Qwen3-30B-A3B\n"
                                      "  megatron_cfg: {enabled: true" +
                                      megatron +
                                      "}\n"
                                      "  generation: {" +
                                      generation + "}\n",
                                  "recipe.yaml",
                                  library());
    draft.value().set("system", {"h100-nvl8", DraftField::Kind::kText, Precedence::kFlag, "--system"});
    return *draft;
}

Result<Scenario> cured(ScenarioDraft draft) {
    for (const auto& fault : faults_of(draft)) {
        if (fault.nearest) {
            draft.apply(*fault.nearest);
        }
    }
    return resolve(draft, library());
}

TEST(Unmodelled, ColocatedRecipesAreImportedAndTellHowToSplitTheirGpus) {
    for (const auto* generation : {"colocated: {enabled: true}", "top_p: 1.0"}) {
        const auto draft = colocated(2, "", generation);
        EXPECT_EQ(draft.find("train.gpus")->text, "16");
        EXPECT_EQ(draft.find("generate.gpus")->text, "16");
        const auto faults = faults_of(draft);
        ASSERT_EQ(faults.size(), 3U) << described(faults);
        EXPECT_EQ(count_rule(faults, "colocated"), 3U);
        for (const auto& fault : faults) {
            EXPECT_EQ(fault.code, ErrorCode::kUnsupported);
        }
        EXPECT_TRUE(mentions(faults, "within a GPU (IPC)"));
        EXPECT_EQ(faults[0].nearest, (Suggestion{"generate.colocated", "false", ""}));
        EXPECT_EQ(faults[1].nearest, (Suggestion{"train.gpus", "8", ""}));
        EXPECT_EQ(faults[2].nearest, (Suggestion{"generate.gpus", "8", ""}));
        const auto scenario = cured(draft);
        ASSERT_TRUE(scenario.has_value()) << described(scenario.error());
        EXPECT_EQ(scenario->train.gpus + scenario->generate.gpus, 16U);
    }
}

TEST(Unmodelled, SplitsWhereBothLayoutsFit) {
    // EP16 needs 16 of the 24 GPUs; 12 and 12 would not do.
    const auto draft =
        colocated(3, ", expert_model_parallel_size: 16", "vllm_cfg: {tensor_parallel_size: 4}");
    const auto faults = faults_of(draft);
    ASSERT_EQ(faults.size(), 3U) << described(faults);
    EXPECT_EQ(faults[1].nearest->value, "16");
    EXPECT_EQ(faults[2].nearest->value, "8");
    EXPECT_TRUE(cured(draft).has_value());
}

TEST(Unmodelled, KeepsTheStagesOfAPipeline) {
    // 48 layers as 6 + 3 · 14 fill four stages on each multiple of four GPUs.
    const auto draft = colocated(1,
                                 ", pipeline_model_parallel_size: 4, num_layers_in_first_pipeline_stage: 6",
                                 "vllm_cfg: {tensor_parallel_size: 4}");
    const auto scenario = cured(draft);
    ASSERT_TRUE(scenario.has_value()) << described(scenario.error());
    EXPECT_EQ(scenario->train.stage_layers, (std::vector<std::uint32_t>{6, 14, 14, 14}));
    EXPECT_EQ(scenario->generate.gpus, 4U);
}

TEST(Unmodelled, OffersAsManyGpusAgainWhereNoSplitFits) {
    const auto draft = colocated(1, ", expert_model_parallel_size: 8", "vllm_cfg: {tensor_parallel_size: 4}");
    const auto faults = faults_of(draft);
    ASSERT_EQ(faults.size(), 1U) << described(faults);
    EXPECT_TRUE(mentions(faults, "No split of 8 GPUs fits both layouts; apart, each side keeps as many"));
    const auto scenario = cured(draft);
    ASSERT_TRUE(scenario.has_value()) << described(scenario.error());
    EXPECT_EQ(scenario->train.gpus, 8U);
    EXPECT_EQ(scenario->generate.gpus, 8U);
}

TEST(Unmodelled, IsToldBesideOtherFaults) {
    auto draft = colocated(2, "", "vllm_cfg: {precision: fp8}");
    draft.erase("system");
    const auto faults = faults_of(draft);
    EXPECT_EQ(count_rule(faults, "colocated"), 3U) << described(faults);
    EXPECT_EQ(count_rule(faults, "missing-field"), 1U);
    EXPECT_EQ(count_rule(faults, "dtype-pair"), 1U);
    EXPECT_TRUE(cured(draft).has_value());
}

TEST(Unmodelled, LetsScenariosPassThatSayNothingOfIt) {
    EXPECT_TRUE(faults_of(testing_io::deepseek()).empty());
    EXPECT_TRUE(faults_of(testing_io::deepseek({{"generate.colocated", "false"}})).empty());
    // 512 GPUs are 256 and 256 again, as published.
    const auto faults =
        faults_of(testing_io::deepseek({{"generate.colocated", "true"}, {"train.gpus", "512"}}));
    ASSERT_EQ(faults.size(), 3U) << described(faults);
    EXPECT_EQ(faults[1].nearest->value, "256");
}

}  // namespace
}  // namespace refit::io
