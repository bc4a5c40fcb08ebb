// SPDX-License-Identifier: Apache-2.0
#include "refit/workload.hpp"

#include <numeric>

#include <gtest/gtest.h>

#include "../shipped.hpp"

namespace refit {
namespace {

const WorkloadClass& class_named(const Workload& workload, const std::string& name) {
    for (const auto& entry : workload.classes()) {
        if (entry.parameter.name == name) {
            return entry;
        }
    }
    throw std::runtime_error{name};
}

TEST(Workload, SlicesFollowTheUnevenPipelineSplit) {
    // DeepSeek-V3 as 3 + 14x4 + 2: dense layers 0-2 on stage 0, MoE layers 3-6 on stage 1 … 59-60 on stage 15.
    const auto workload = Workload::make(shipped_scenario("deepseek-v3-h100"));
    EXPECT_EQ(class_named(workload, "model.layers.{layer}.mlp.up_proj.weight").slices,
              (std::vector<WorkloadSlice>{{0, 0, 3}}));
    const auto& experts = class_named(workload, "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight").slices;
    ASSERT_EQ(experts.size(), 15U);
    EXPECT_EQ(experts.front(), (WorkloadSlice{1, 0, 4}));
    EXPECT_EQ(experts.back(), (WorkloadSlice{15, 0, 2}));
    EXPECT_EQ(class_named(workload, "model.embed_tokens.weight").slices, (std::vector<WorkloadSlice>{{0, 0, 1}}));
    EXPECT_EQ(class_named(workload, "lm_head.weight").slices, (std::vector<WorkloadSlice>{{15, 0, 1}}));
}

TEST(Workload, ExpertsOfALayerAreOneLogicalTensor) {
    const auto workload = Workload::make(shipped_scenario("deepseek-v3-h100"));
    const auto& entry = class_named(workload, "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight");
    EXPECT_EQ(std::vector(entry.source.shape().begin(), entry.source.shape().end()),
              (std::vector<std::uint64_t>{256, 2048, 7168}));
    EXPECT_EQ(entry.source.shards().size(), 16U);
    EXPECT_EQ(entry.destinations.front().shards().size(), 32U);
    EXPECT_EQ(entry.logical_tensors(), 58U);
}

TEST(Workload, EveryGeneratorHoldsItsShareAndAllThatIsReplicated) {
    // 1,339,990,999,040 sharded bytes over TP32, 2,061,869,056 replicated (derived in traffic_test.cpp).
    const auto workload = Workload::make(shipped_scenario("deepseek-v3-h100"));
    ASSERT_EQ(workload.generator_bytes().size(), 256U);
    for (const auto bytes : workload.generator_bytes()) {
        EXPECT_EQ(bytes, 1'339'990'999'040U / 32 + 2'061'869'056U);
    }
    EXPECT_EQ(workload.payload_bytes().count(), 1'342'052'868'096U);
    EXPECT_EQ(workload.delivered_bytes().count(), 256 * (1'339'990'999'040U / 32 + 2'061'869'056U));
}

TEST(Workload, GenerationStagesShareTheLayers) {
    // tp16.pp2: layers 0-30 and 31-60 of 61 (the remainder goes to the stage before the last); the head is on the last.
    const auto workload = Workload::make(shipped_scenario("deepseek-v3-h100", {{"generate.layout", "tp16.pp2"}}));
    EXPECT_EQ(class_named(workload, "lm_head.weight").slices, (std::vector<WorkloadSlice>{{15, 1, 1}}));
    std::uint32_t first = 0;
    for (const auto& slice : class_named(workload, "model.layers.{layer}.input_layernorm.weight").slices) {
        first += slice.generate_stage == 0 ? slice.layers : 0;
    }
    EXPECT_EQ(first, 31U);
}

TEST(Workload, SlicesOfAnInterleavedPipelineSayWhichLayersTheyHave) {
    // 8 stages of 2 virtual ones over 32 layers: chunks of 2, so stage s has 2s, 2s + 1, 16 + 2s and 17 + 2s; of two
    // engine stages the first has 0 to 15.
    const auto workload = Workload::make(shipped_scenario(
        "reshard-one-domain",
        {{"model", "llama-3.1-8b"}, {"train.layout", "pp8"}, {"train.gpus", "8"}, {"train.virtual_pipeline", "2"},
         {"generate.layout", "tp2.pp2"}, {"generate.gpus", "8"}}));
    const auto& entry = class_named(workload, "model.layers.{layer}.input_layernorm.weight");
    ASSERT_EQ(entry.slices.size(), 16U);
    EXPECT_EQ(entry.slices[2], (WorkloadSlice{1, 0, 2, false, {2, 3}}));
    EXPECT_EQ(entry.slices[3], (WorkloadSlice{1, 1, 2, false, {18, 19}}));
    EXPECT_EQ(entry.logical_number(3, 1), 19U);
    EXPECT_EQ(class_named(workload, "lm_head.weight").slices, (std::vector<WorkloadSlice>{{7, 1, 1}}));
}

TEST(Workload, InFp8HoldsEachScaleWithItsPartOfTheWeight) {
    // Qwen3-30B-A3B at TP2. Cut: experts 28,991,029,248 B and their scales 7,077,888, attention 905,969,664 and
    // 221,184, embedding and head 1,244,659,712. On each: routers 25,165,824, norms 421,888.
    const auto workload = Workload::make(qwen_30b_in_fp8());
    for (const auto bytes : workload.generator_bytes()) {
        EXPECT_EQ(bytes, 31'148'957'696U / 2 + 25'587'712U);
    }
    EXPECT_EQ(workload.payload_bytes().count(), 31'174'545'408U);
    const auto& scales = class_named(workload, "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight_scale_inv");
    EXPECT_EQ(std::vector(scales.source.shape().begin(), scales.source.shape().end()),
              (std::vector<std::uint64_t>{128, 6, 16}));
    EXPECT_EQ(scales.element_bytes(), 4U);
}

}  // namespace
}  // namespace refit
