// SPDX-License-Identifier: Apache-2.0
#include "refit/holdings.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "../shipped.hpp"

namespace refit {
namespace {

const Holding& holding_named(const RankHoldings& rank, const std::string& name) {
    const auto found = std::ranges::find(rank.holdings, name, &Holding::name);
    if (found == rank.holdings.end()) {
        throw std::out_of_range{name};
    }
    return *found;
}

TEST(Holdings, ATrainerHoldsItsExpertsOfItsStage) {
    // DeepSeek-V3, PP16 EP16: rank 37 = 2 x 16 + 5 is in stage 2 (layers 7-10, four MoE layers), EP 5: experts 80-95.
    const auto scenario = shipped_scenario("deepseek-v3-h100");
    const auto rank = holdings_of(scenario, Workload::make(scenario), RankId{37});
    EXPECT_TRUE(rank.is_trainer);
    EXPECT_EQ(rank.stage, 2U);
    const auto& experts = holding_named(rank, "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight");
    EXPECT_EQ(experts.layers, 4U);
    EXPECT_EQ(experts.replicas, 1U);
    ASSERT_EQ(experts.boxes.size(), 1U);
    EXPECT_EQ(experts.boxes[0].axes()[0], (Interval{80, 96}));
    EXPECT_EQ(experts.bytes.count(), 4U * 16 * 2048 * 7168 * 2);
}

TEST(Holdings, AGeneratorHoldsItsRowsOfEveryLayer) {
    // Generator 37 is engine 1, TP 5 of 32: expert rows 320-383 of 2048, in 58 layers, on 8 engines alike.
    const auto scenario = shipped_scenario("deepseek-v3-h100");
    const auto rank = holdings_of(scenario, Workload::make(scenario), RankId{256 + 37});
    EXPECT_FALSE(rank.is_trainer);
    const auto& experts = holding_named(rank, "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight");
    EXPECT_EQ(experts.layers, 58U);
    EXPECT_EQ(experts.replicas, 8U);
    EXPECT_EQ(experts.boxes[0].axes()[1], (Interval{320, 384}));
}

TEST(Holdings, ThePaddingOfAVocabularyIsToldApart) {
    // Qwen3-235B, TP4: 151,936 rows padded to 152,064 = 4 x 38,016. The last rank holds 37,888 real rows and 128 of
    // padding, 4096 wide, BF16.
    const auto scenario = shipped_scenario("qwen3-235b-h100");
    const auto& workload = Workload::make(scenario);
    const auto last = holdings_of(scenario, workload, RankId{3});
    const auto& table = holding_named(last, "model.embed_tokens.weight");
    EXPECT_EQ(table.bytes.count(), 37'888U * 4096 * 2);
    EXPECT_EQ(table.padding.count(), 128U * 4096 * 2);
    EXPECT_EQ(holding_named(holdings_of(scenario, workload, RankId{0}), "model.embed_tokens.weight").padding.count(), 0U);
}

TEST(SummariseLayout, CountsReplicasAndNamesWhatNobodyReceives) {
    const auto scenario = shipped_scenario("deepseek-v3-h100");
    const auto workload = Workload::make(scenario);
    const auto summary = summarise_layout(scenario, workload);
    EXPECT_EQ(summary.generate.all, workload.delivered_bytes());
    EXPECT_EQ(summary.generate.replicated, workload.delivered_bytes() - workload.payload_bytes());
    EXPECT_EQ(summary.generate.least, summary.generate.most);
    EXPECT_FALSE(summary.delivered_to_nobody.empty());
    EXPECT_TRUE(summary.key_value_replicated.empty());
}

TEST(SummariseLayout, SharedKvHeadsAreNamed) {
    // Qwen3-235B: 4 KV heads on TP8.
    const auto scenario = shipped_scenario("qwen3-235b-h100");
    EXPECT_EQ(summarise_layout(scenario, Workload::make(scenario)).key_value_replicated.size(), 2U);
}

}  // namespace
}  // namespace refit
