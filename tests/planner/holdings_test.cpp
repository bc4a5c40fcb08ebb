// SPDX-License-Identifier: Apache-2.0
#include "refit/holdings.hpp"

#include <algorithm>
#include <initializer_list>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/held_weights.hpp"

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

/// The most that `holdings_of` finds with any rank of a side, and who it is.
FullestRank most_held(const Scenario& scenario, bool is_trainer) {
    const auto workload = Workload::make(scenario);
    const auto first = is_trainer ? 0 : scenario.train.gpus;
    FullestRank most;
    for (std::uint32_t rank = 0; rank < (is_trainer ? scenario.train.gpus : scenario.generate.gpus); ++rank) {
        const auto held = holdings_of(scenario, workload, RankId{first + rank});
        if (const auto bytes = held.bytes() + held.padding(); bytes > most.bytes) {
            most = {rank, held.stage, bytes};
        }
    }
    return most;
}

TEST(Holdings, OfTheFullestRankAreWhatTheMemoryCheckCounts) {
    std::mt19937 random{21};
    const auto any_of = [&](std::initializer_list<const char*> texts) {
        return std::string{texts.begin()[std::uniform_int_distribution<std::size_t>{0, texts.size() - 1}(random)]};
    };
    for (int round = 0; round < 40; ++round) {
        const auto scenario = shipped_scenario(
            "qwen3-235b-h100",
            {{"model", any_of({"qwen3-30b-a3b", "nemotron-3-nano-30b-a3b", "qwen3-32b"})},
             {"train.layout", any_of({"tp1@32", "tp8.pp2@32", "pp8@32", "tp4.cp2.pp4@32", "tp2.pp4:12:4@32"})},
             {"generate.layout", any_of({"tp8@32", "tp2.pp4@32", "tp4.pp2@32", "tp1@32"})},
             {"system", "b200-nvl8"}});
        const auto payload = scenario.payload();
        ASSERT_EQ(fullest_rank(scenario.train, payload), most_held(scenario, true)) << to_text(scenario.train);
        ASSERT_EQ(fullest_rank(scenario.generate, payload, scenario.model.layers()), most_held(scenario, false))
            << to_text(scenario.generate);
    }
    const auto experts = shipped_scenario("qwen3.8-2.4t-h100");
    EXPECT_EQ(fullest_rank(experts.train, experts.payload()), most_held(experts, true));
    EXPECT_EQ(fullest_rank(experts.generate, experts.payload(), experts.model.layers()), most_held(experts, false));
}

TEST(Holdings, FollowTheChunksOfALayoutString) {
    // Qwen3-235B: 94 layers in eight chunks over PP4; stage 1 has the second and the sixth, 20 + 3.
    const auto scenario = shipped_scenario("qwen3-235b-h100",
                                           {{"train.layout", "tp4.pp4.ep16@128"},
                                            {"train.pipeline.layout", "Et*10|t*20|t*10|t*10|t*20|t*3|t*20|tL"}});
    const auto workload = Workload::make(scenario);
    const auto per_stage = scenario.train.ranks_per_stage();
    const auto layers = [&](std::uint32_t stage) {
        return holding_named(holdings_of(scenario, workload, RankId{stage * per_stage}), "model.layers.{layer}.input_layernorm.weight")
            .layers;
    };
    EXPECT_EQ(layers(0), 30U);
    EXPECT_EQ(layers(1), 23U);
    EXPECT_EQ(layers(2), 30U);
    EXPECT_EQ(layers(3), 11U);
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
