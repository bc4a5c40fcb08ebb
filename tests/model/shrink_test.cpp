// SPDX-License-Identifier: Apache-2.0
#include "refit/shrink.hpp"

#include <string>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "small_models.hpp"

namespace refit {
namespace {

/// Widths of DeepSeek-V3 by 64: 7168 -> 112, 2048 -> 32, 1536 -> 24, rope heads 64 -> 1.
TEST(Shrink, DividesWidthsAndKeepsCounts) {
    Faults faults;
    const auto small = shrunk(testing_models::shipped_facts("deepseek-v3"), 64);
    EXPECT_EQ(small.positive("hidden_size", faults), 112U);
    EXPECT_EQ(small.positive("moe_intermediate_size", faults), 32U);
    EXPECT_EQ(small.positive("q_lora_rank", faults), 24U);
    EXPECT_EQ(small.positive("qk_rope_head_dim", faults), 1U);
    EXPECT_EQ(small.positive("num_hidden_layers", faults), 61U);
    EXPECT_EQ(small.positive("n_routed_experts", faults), 256U);
    EXPECT_EQ(small.positive("num_attention_heads", faults), 128U);
    EXPECT_TRUE(faults.empty());
}

/// 4096 / 32 heads = 128 rows a head, by 8: 16, though the hidden size says it nowhere.
TEST(Shrink, DividesHeadsThatShareTheHiddenSize) {
    Facts facts{"config.json"};
    facts.set("hidden_size", std::int64_t{4096});
    facts.set("num_attention_heads", std::int64_t{32});
    Faults faults;
    EXPECT_EQ(shrunk(facts, 8).positive("head_dim", faults), 16U);
    EXPECT_EQ(shrunk(facts, 1000).positive("head_dim", faults), 1U);
}

TEST(Shrink, GivesAModelOfEveryFamilyWithAsManyTensors) {
    for (const auto* id : testing_models::kShippedIds) {
        const auto large = testing_models::shipped(id);
        const auto small = shipped_library().model(std::string{id} + "/8");
        ASSERT_TRUE(small.has_value()) << id << small.error().front().message;
        EXPECT_EQ(small->payload_totals().tensors, large.payload_totals().tensors) << id;
        EXPECT_EQ(small->layers(), large.layers()) << id;
        EXPECT_LT(small->payload_totals().bytes.as_double(), large.payload_totals().bytes.as_double() / 8)
            << id;
        EXPECT_EQ(small->title(), large.title() + " / 8");
    }
}

TEST(Shrink, TakesOnlyShippedModels) {
    EXPECT_FALSE(shipped_library().model("deepseek-v4/8").has_value());
    EXPECT_FALSE(shipped_library().model("deepseek-v3/0").has_value());
    EXPECT_FALSE(shipped_library().model("deepseek-v3/x").has_value());
}

}  // namespace
}  // namespace refit
