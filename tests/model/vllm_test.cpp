// SPDX-License-Identifier: Apache-2.0
#include "refit/vllm.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "refit/layout_check.hpp"
#include "refit/megatron.hpp"
#include "shard_oracle.hpp"

namespace refit {
namespace {

using testing_models::class_named;
using testing_models::kShippedIds;
using testing_models::shipped;
using testing_models::shrunken;
using testing_models::test_name;
using testing_oracle::kLayouts;
using testing_oracle::RuledPayload;
using testing_oracle::Sizes;

/// A random layout that the rules allow: experts cut by tp, or whole over ep ranks that make up tp groups.
GenerateLayout draw(const Inventory& model, const RuledPayload& payload, std::mt19937& random) {
    Sizes any{random};
    while (true) {
        LayoutText text;
        text.tp = any(12);
        text.pp = any(std::min(model.layers(), 3U));
        text.dp = any(4);
        text.ep = model.experts() > 0 && any(2) == 1 ? *text.tp * (*text.pp == 1 ? any(4) : 1) : 1;
        const auto gpus = *text.tp * *text.pp * *text.dp;
        bool fits = gpus <= 24 &&
                    (*text.ep == 1 || (*text.ep <= model.experts() && *text.tp * *text.dp % *text.ep == 0));
        for (std::size_t i = 0; i < payload.classes.size() && fits; ++i) {
            const auto& parameter = payload.classes[i];
            const bool is_whole = parameter.is_expert() && *text.ep > 1;
            fits = testing_oracle::divides(parameter, payload.rules[i], is_whole ? 1 : *text.tp, false);
        }
        if (fits) {
            auto layout = make_generate_layout(text, gpus, model).value();
            layout.expert_placement = any(2) == 1 ? ExpertPlacement::kLinear : ExpertPlacement::kRoundRobin;
            return layout;
        }
    }
}

class EveryModelOnGenerators : public testing::TestWithParam<const char*> {};

TEST_P(EveryModelOnGenerators, IsSharedOutAsTheRulesSay) {
    const auto small = shrunken(GetParam());
    const RuledPayload payload{small};
    std::mt19937 random{20261130};
    std::set<std::uint32_t> degrees;
    for (int draws = 0; draws < kLayouts; ++draws) {
        const auto layout = draw(small.model, payload, random);
        degrees.insert(layout.tp);
        const auto stage = std::uniform_int_distribution<std::uint32_t>{0, layout.pp - 1}(random);
        for (std::size_t i = 0; i < payload.classes.size(); ++i) {
            const auto& parameter = payload.classes[i];
            SCOPED_TRACE(to_text(layout) + " " + parameter.name);
            const auto distribution = vllm::distribution(parameter, layout, stage);
            const auto size = parameter.elements() * parameter.tensors_per_layer();
            // KV heads and replicas stand in one shard with several members; shards never overlap.
            ASSERT_EQ(testing_oracle::shard_fault(distribution, size, layout.gpus), "");
            const auto held = testing_oracle::held_by_all(distribution, size, layout.gpus);
            for (std::uint32_t rank = 0; rank < layout.gpus; ++rank) {
                ASSERT_EQ(held[rank],
                          testing_oracle::held_by_generator(parameter, payload.rules[i], layout, stage, rank))
                    << "rank " << rank;
            }
            // Every engine, or group of engines that share the experts, has all of it.
            const auto group =
                std::max(layout.tp * layout.pp, parameter.is_expert() && layout.pp == 1 ? layout.ep : 1U);
            for (std::uint32_t first = 0; first < layout.gpus; first += group) {
                testing_oracle::Held together(size, 0);
                for (auto rank = first; rank < first + group; ++rank) {
                    testing_oracle::add(together, held[rank]);
                }
                ASSERT_EQ(together, payload.all[i]) << "an element missing from " << first;
            }
        }
    }
    EXPECT_GE(degrees.size(), 3U) << "the draw must vary";
}

INSTANTIATE_TEST_SUITE_P(Models,
                         EveryModelOnGenerators,
                         testing::ValuesIn(kShippedIds),
                         [](const auto& test) { return test_name(test.param); });

GenerateLayout layout_of(std::uint32_t tp, std::uint32_t pp, std::uint32_t dp, std::uint32_t ep) {
    GenerateLayout layout;
    layout.tp = tp;
    layout.pp = pp;
    layout.dp = dp;
    layout.ep = ep;
    layout.gpus = tp * pp * dp;
    return layout;
}

/// Bytes that all members of a distribution hold together.
std::uint64_t delivered(const ParameterClass& parameter, const GenerateLayout& layout) {
    std::uint64_t elements = 0;
    const auto distribution = vllm::distribution(parameter, layout, 0);
    for (const auto& shard : distribution.shards()) {
        elements += shard.elements() * shard.members.size();
    }
    return elements * size_of(parameter.dtype) * std::max<std::uint64_t>(1, parameter.layers.size());
}

TEST(Vllm, A02ReplicatesKvHeadsOnConsecutiveRanks) {
    // Qwen3-30B-A3B, 4 KV heads of 128 x 2048 on TP8: kv = rank / (8 / 4), so ranks 0 and 1 hold head 0, 6
    // and 7 head 3; 128 · 2048 · 2 = 524,288 B a rank.
    const auto model = shipped("qwen3-30b-a3b");
    const auto key = class_named(model, "model.layers.{layer}.self_attn.k_proj.weight");
    const auto distribution = vllm::distribution(key, layout_of(8, 1, 1, 1), 0);
    ASSERT_EQ(distribution.shards().size(), 4U);
    for (std::uint32_t head = 0; head < 4; ++head) {
        const auto& shard = distribution.shards()[head];
        EXPECT_EQ(shard.members, (std::vector<std::uint32_t>{2 * head, 2 * head + 1}));
        EXPECT_EQ(shard.boxes.front().axes()[0], (Interval{128 * head, 128 * (head + 1)}));
        EXPECT_EQ(shard.elements() * 2, 524'288U);
    }
}

TEST(Vllm, A02DeliversTheCopiesOfKvHeadsNormsAndRouters) {
    // Per layer: k and v once more, 2 · 4 · 128 · 2048 · 2 B = 4,194,304; two norms of 2048, two of 128 and
    // the router of 128 x 2048 seven times more, (4096 + 256 + 262,144) · 7 · 2 B = 3,730,944; 48 layers:
    // 380,411,904. Final norm: 2048 · 7 · 2 B = 28,672. Together 380,440,576 on top of 61,064,245,248.
    std::uint64_t bytes = 0;
    for (const auto& parameter : shipped("qwen3-30b-a3b").payload()) {
        bytes += delivered(parameter, layout_of(8, 1, 1, 1));
    }
    EXPECT_EQ(bytes, 61'444'685'824U);
    EXPECT_EQ(bytes - 380'440'576U, 61'064'245'248U);
}

/// Experts of `model` that generators of `to` and trainers of EP `ep` have in common: bytes for each pair of
/// shards.
std::vector<std::vector<std::uint64_t>> expert_bytes(std::uint32_t ep, const GenerateLayout& to) {
    TrainLayout from;
    from.ep = from.gpus = ep;
    std::vector<std::vector<std::uint64_t>> bytes(to.gpus, std::vector<std::uint64_t>(ep, 0));
    for (const auto& parameter : shipped("qwen3-30b-a3b").payload()) {
        if (!parameter.is_expert()) {
            continue;
        }
        const auto sources = megatron::distribution(parameter, from);
        const auto destinations = vllm::distribution(parameter, to, 0);
        for (const auto& source : sources.shards()) {
            for (const auto& destination : destinations.shards()) {
                const auto common = intersection(source.boxes.front(), destination.boxes.front());
                bytes[destination.members.front()][source.members.front()] +=
                    common ? common->volume() * 2 * parameter.layers.size() : 0;
            }
        }
    }
    return bytes;
}

TEST(Vllm, A22TakesItsExpertsFromTwoSourcesOfTwiceTheEp) {
    // EP8 to EP4: 32 experts a destination, 16 each from sources 2d and 2d + 1:
    // 16 experts · 3 · 768 · 2048 · 2 B · 48 layers = 7,247,757,312 B.
    const auto bytes = expert_bytes(8, layout_of(4, 1, 1, 4));
    for (std::size_t destination = 0; destination < 4; ++destination) {
        for (std::size_t source = 0; source < 8; ++source) {
            EXPECT_EQ(bytes[destination][source], source / 2 == destination ? 7'247'757'312U : 0U);
        }
    }
}

TEST(Vllm, A23CutsEveryExpertOverTpWithoutEp) {
    // EP8 to TP8: 64 pairs of 16 experts · 3 · 96 · 2048 · 2 B · 48 = 905,969,664 B.
    for (const auto& row : expert_bytes(8, layout_of(8, 1, 1, 1))) {
        for (const auto pair : row) {
            EXPECT_EQ(pair, 905'969'664U);
        }
    }
    std::uint64_t whole = 0;
    for (const auto& parameter : shipped("qwen3-30b-a3b").payload()) {
        whole += delivered(parameter, layout_of(8, 1, 1, 1));
    }
    EXPECT_EQ(whole / 8, 7'680'585'728U);
}

TEST(Vllm, A24PlacesExpertsLinearly) {
    // 16 experts on EP4: rank 1 has 4 to 7. 14 on EP4: the first two ranks have four, the others three.
    ParameterClass parameter;
    parameter.shape = {2, 2};
    parameter.sharding = Sharding::kColumn;
    parameter.experts = 16;
    const auto even = vllm::distribution(parameter, layout_of(4, 1, 1, 4), 0);
    EXPECT_EQ(even.shards()[1].boxes.front().axes()[0], (Interval{4, 8}));
    parameter.experts = 14;
    const auto uneven = vllm::distribution(parameter, layout_of(4, 1, 1, 4), 0);
    EXPECT_EQ(uneven.shards()[1].boxes.front().axes()[0], (Interval{4, 8}));
    EXPECT_EQ(uneven.shards()[2].boxes.front().axes()[0], (Interval{8, 11}));
    EXPECT_EQ(uneven.shards()[3].boxes.front().axes()[0], (Interval{11, 14}));
}

TEST(Vllm, A24PlacesExpertsInTurn) {
    // 16 experts on EP4: rank 1 has 1, 5, 9 and 13. From linear EP4 sources of four experts each it draws one of each.
    ParameterClass parameter;
    parameter.shape = {2, 2};
    parameter.sharding = Sharding::kColumn;
    parameter.experts = 16;
    auto layout = layout_of(4, 1, 1, 4);
    layout.expert_placement = ExpertPlacement::kRoundRobin;
    const auto turns = vllm::distribution(parameter, layout, 0);
    ASSERT_EQ(turns.shards()[1].boxes.size(), 4U);
    for (std::uint64_t turn = 0; turn < 4; ++turn) {
        EXPECT_EQ(turns.shards()[1].boxes[turn].axes()[0], (Interval{4 * turn + 1, 4 * turn + 2}));
    }
    TrainLayout from;
    from.ep = from.gpus = 4;
    const auto sources = megatron::distribution(parameter, from);
    for (const auto& source : sources.shards()) {
        std::uint64_t common = 0;
        for (const auto& box : turns.shards()[1].boxes) {
            const auto both = intersection(source.boxes.front(), box);
            common += both ? both->volume() : 0;
        }
        EXPECT_EQ(common, 4U);  // One expert of 2 x 2.
    }
    // 14 experts: ranks 0 and 1 have four, the others three.
    parameter.experts = 14;
    EXPECT_EQ(vllm::distribution(parameter, layout, 0).shards()[1].boxes.size(), 4U);
    EXPECT_EQ(vllm::distribution(parameter, layout, 0).shards()[2].boxes.size(), 3U);
}

TEST(Vllm, SpreadsExpertsOverSeveralEngines) {
    // tp2.dp4.ep4: ranks 0 to 3 (two engines) share the experts, ranks 4 to 7 again.
    ParameterClass parameter;
    parameter.shape = {2, 2};
    parameter.sharding = Sharding::kRow;
    parameter.experts = 8;
    const auto distribution = vllm::distribution(parameter, layout_of(2, 1, 4, 4), 0);
    ASSERT_EQ(distribution.shards().size(), 4U);
    EXPECT_EQ(distribution.shards()[3].members, (std::vector<std::uint32_t>{3, 7}));
    EXPECT_EQ(distribution.shards()[3].boxes.front().axes()[0], (Interval{6, 8}));
    EXPECT_EQ(distribution.shards()[3].boxes.front().axes()[2], (Interval{0, 2}));
}

TEST(Vllm, NumbersRanksByTpThenStageThenEngine) {
    // tp2.pp2.dp2: stage 1 of engine 0 is ranks 2 and 3, of engine 1 ranks 6 and 7.
    ParameterClass parameter;
    parameter.shape = {4, 2};
    parameter.sharding = Sharding::kColumn;
    const auto distribution = vllm::distribution(parameter, layout_of(2, 2, 2, 1), 1);
    ASSERT_EQ(distribution.shards().size(), 2U);
    EXPECT_EQ(distribution.shards()[0].members, (std::vector<std::uint32_t>{2, 6}));
    EXPECT_EQ(distribution.shards()[1].members, (std::vector<std::uint32_t>{3, 7}));
}

TEST(Vllm, PadsTheVocabularyTo64BeforeItIsCut) {
    // 300 rows padded to 320 on TP5: 64 a rank, 300 - 256 = 44 real ones on the last. On TP64, 5 a rank: the
    // last 4 of the 64 ranks (rows 300 to 319) hold nothing.
    ParameterClass parameter;
    parameter.shape = {300, 1};
    parameter.sharding = Sharding::kVocabulary;
    const auto five = vllm::distribution(parameter, layout_of(5, 1, 1, 1), 0);
    ASSERT_EQ(five.shards().size(), 5U);
    EXPECT_EQ(five.shards()[4].boxes.front().axes()[0], (Interval{256, 300}));
    const auto many = vllm::distribution(parameter, layout_of(64, 1, 1, 1), 0);
    EXPECT_EQ(many.shards().size(), 60U);
}

TEST(StageOfLayer, GivesTheRemainderToTheStagesBeforeTheLast) {
    // 61 layers on four stages: 15 each and one over, for the last but one: 15, 15, 16, 15.
    const auto layout = layout_of(1, 4, 1, 1);
    std::vector<int> layers(4, 0);
    for (std::uint32_t layer = 0; layer < 61; ++layer) {
        ++layers[vllm::stage_of_layer(layer, 61, layout)];
    }
    EXPECT_EQ(layers, (std::vector<int>{15, 15, 16, 15}));
    // 11 layers on four stages: 2 each and three over: 3, 3, 3, 2.
    EXPECT_EQ(vllm::stage_of_layer(2, 11, layout), 0U);
    EXPECT_EQ(vllm::stage_of_layer(3, 11, layout), 1U);
    EXPECT_EQ(vllm::stage_of_layer(8, 11, layout), 2U);
    EXPECT_EQ(vllm::stage_of_layer(9, 11, layout), 3U);
    EXPECT_EQ(vllm::stage_of_layer(10, 11, layout), 3U);
}

TEST(StageOfLayer, NeverFallsFromOneLayerToTheNext) {
    for (std::uint32_t layers = 1; layers <= 40; ++layers) {
        for (std::uint32_t pp = 1; pp <= layers; ++pp) {
            std::uint32_t previous = 0;
            for (std::uint32_t layer = 0; layer < layers; ++layer) {
                const auto stage = vllm::stage_of_layer(layer, layers, layout_of(1, pp, 1, 1));
                ASSERT_TRUE(stage == previous || stage == previous + 1) << layers << " on " << pp;
                previous = stage;
            }
            ASSERT_EQ(previous, pp - 1) << layers << " on " << pp;
        }
    }
}

}  // namespace
}  // namespace refit
