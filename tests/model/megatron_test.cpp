// SPDX-License-Identifier: Apache-2.0
#include "refit/megatron.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "refit/layout_check.hpp"
#include "refit/vllm.hpp"
#include "shard_oracle.hpp"

namespace refit {
namespace {

using testing_models::kShippedIds;
using testing_models::shipped;
using testing_models::shrunken;
using testing_models::test_name;
using testing_oracle::kLayouts;
using testing_oracle::RuledPayload;
using testing_oracle::Sizes;

/// A random layout that the rules allow.
TrainLayout draw(const Inventory& model, const RuledPayload& payload, std::mt19937& random) {
    Sizes any{random};
    while (true) {
        LayoutText text;
        text.tp = any(12);
        text.cp = any(3);
        text.pp = any(std::min(model.layers(), 3U));
        const bool is_moe = model.experts() > 0;
        text.ep = is_moe ? any(8) : 1;
        text.etp = is_moe ? any(4) : 1;
        const auto stage = std::lcm(*text.tp * *text.cp, *text.ep * *text.etp) * any(2);
        bool fits = stage <= 24 && (!is_moe || model.experts() % *text.ep == 0);
        for (std::size_t i = 0; i < payload.classes.size() && fits; ++i) {
            const auto& parameter = payload.classes[i];
            fits = testing_oracle::divides(
                parameter, payload.rules[i], parameter.is_expert() ? *text.etp : *text.tp, true);
        }
        if (fits) {
            return make_train_layout(text, stage * *text.pp, model).value();
        }
    }
}

class EveryModelOnTrainers : public testing::TestWithParam<const char*> {};

TEST_P(EveryModelOnTrainers, IsSharedOutAsTheRulesSay) {
    const auto small = shrunken(GetParam());
    const RuledPayload payload{small};
    std::mt19937 random{20261129};
    std::set<std::uint32_t> degrees;
    for (int draws = 0; draws < kLayouts; ++draws) {
        const auto layout = draw(small.model, payload, random);
        degrees.insert(layout.tp);
        const auto ranks = layout.ranks_per_stage();
        for (std::size_t i = 0; i < payload.classes.size(); ++i) {
            const auto& parameter = payload.classes[i];
            SCOPED_TRACE(to_text(layout) + " " + parameter.name);
            const auto distribution = megatron::distribution(parameter, layout);
            const auto size = parameter.elements() * parameter.tensors_per_layer();
            ASSERT_EQ(testing_oracle::shard_fault(distribution, size, ranks), "");
            const auto held = testing_oracle::held_by_all(distribution, size, ranks);
            testing_oracle::Held anywhere(size, 0);
            for (std::uint32_t rank = 0; rank < ranks; ++rank) {
                ASSERT_EQ(held[rank],
                          testing_oracle::held_by_trainer(parameter, payload.rules[i], layout, rank))
                    << "rank " << rank;
                testing_oracle::add(anywhere, held[rank]);
            }
            ASSERT_EQ(anywhere, payload.all[i]) << "an element that nobody holds";
        }
    }
    EXPECT_GE(degrees.size(), 3U) << "the draw must vary";
}

INSTANTIATE_TEST_SUITE_P(Models, EveryModelOnTrainers, testing::ValuesIn(kShippedIds), [](const auto& test) {
    return test_name(test.param);
});

/// The q, k and v projections of one attention block.
std::vector<ParameterClass> projections(const AttentionHeads& heads, std::uint64_t hidden) {
    std::vector<ParameterClass> classes(3);
    const std::array shardings{Sharding::kQuery, Sharding::kKey, Sharding::kValue};
    for (std::size_t i = 0; i < classes.size(); ++i) {
        const auto rows = i == 0 ? heads.query * heads.rows_per_query_head
                                 : heads.key_value * heads.rows_per_key_value_head;
        classes[i].shape = {rows, hidden};
        classes[i].sharding = shardings[i];
        classes[i].heads = heads;
    }
    return classes;
}

/// Rows of the shard that `rank` holds.
std::uint64_t rows_of(const Distribution& distribution, std::uint32_t rank) {
    for (const auto& shard : distribution.shards()) {
        if (std::ranges::find(shard.members, rank) != shard.members.end()) {
            return shard.elements() / distribution.shape().back();
        }
    }
    return 0;
}

/// Rows that `source` of one distribution and `destination` of the other have in common.
std::uint64_t common_rows(const Distribution& from,
                          std::uint32_t source,
                          const Distribution& to,
                          std::uint32_t destination) {
    std::uint64_t rows = 0;
    for (const auto& a : from.shards()) {
        for (const auto& b : to.shards()) {
            if (std::ranges::find(a.members, source) == a.members.end() ||
                std::ranges::find(b.members, destination) == b.members.end()) {
                continue;
            }
            for (const auto& left : a.boxes) {
                for (const auto& right : b.boxes) {
                    const auto both = intersection(left, right);
                    rows += both ? both->axes()[0].length() : 0;
                }
            }
        }
    }
    return rows;
}

TrainLayout train_tp(std::uint32_t tp) {
    TrainLayout layout;
    layout.tp = layout.gpus = tp;
    return layout;
}

GenerateLayout generate_tp(std::uint32_t tp) {
    GenerateLayout layout;
    layout.tp = layout.gpus = tp;
    return layout;
}

TEST(Megatron, A01CutsFusedQkvByRawRowsWhereKvHeadsAreFewerThanTp) {
    // 64 query and 2 KV heads of 128 rows, hidden 4096, TP8 to TP8. Fused: 2 groups of (32 + 1 + 1) · 128 =
    // 4352 rows, 8704 in all, 1088 a source. Group 0 ends in its k and v at rows 4096 to 4351, which source 3
    // (3264 to 4351) holds behind 832 query rows; group 1 the same on source 7.
    const auto classes = projections({64, 2, 128, 128}, 4096);
    std::vector<Distribution> from;
    std::vector<Distribution> to;
    for (const auto& parameter : classes) {
        from.push_back(megatron::distribution(parameter, train_tp(8)));
        to.push_back(vllm::distribution(parameter, generate_tp(8), 0));
    }
    for (std::uint32_t source = 0; source < 8; ++source) {
        const bool is_last_of_group = source == 3 || source == 7;
        EXPECT_EQ(rows_of(from[0], source), is_last_of_group ? 832U : 1088U) << source;
        EXPECT_EQ(rows_of(from[1], source), is_last_of_group ? 128U : 0U) << source;
        EXPECT_EQ(rows_of(from[2], source), is_last_of_group ? 128U : 0U) << source;
        std::uint64_t sent = 0;
        for (std::size_t i = 0; i < classes.size(); ++i) {
            for (std::uint32_t destination = 0; destination < 8; ++destination) {
                sent += common_rows(from[i], source, to[i], destination);
            }
        }
        // Each KV head goes to four destinations: 832 + 4 · (128 + 128) = 1856 rows. In bytes: · 4096 · 2.
        EXPECT_EQ(sent, is_last_of_group ? 1856U : 1088U) << source;
        EXPECT_EQ(sent * 4096 * 2, is_last_of_group ? 15'204'352U : 8'912'896U) << source;
    }
    // Source 0 has query rows 0 to 1087; destination 0 wants 0 to 1023, destination 1 the next 1024.
    EXPECT_EQ(common_rows(from[0], 0, to[0], 0), 1024U);
    EXPECT_EQ(common_rows(from[0], 0, to[0], 1), 64U);
    EXPECT_EQ(common_rows(from[0], 0, to[0], 2), 0U);
}

TEST(Megatron, A04TakesQAndKAndVFromEachGroupNotFromTheConcatenation) {
    // 32 query and 8 KV heads of 128 rows, TP2: rank 0 has groups 0 to 3, that is q rows 0 to 2047, k and v
    // rows 0 to 511. A cut of the plain concatenation would give it q rows 0 to 3071 and no k.
    const auto classes = projections({32, 8, 128, 128}, 4096);
    const std::array<std::uint64_t, 3> expected{2048, 512, 512};
    for (std::size_t i = 0; i < classes.size(); ++i) {
        const auto distribution = megatron::distribution(classes[i], train_tp(2));
        EXPECT_EQ(rows_of(distribution, 0), expected[i]);
        EXPECT_EQ(distribution.shards()[0].boxes.front().axes()[0].begin, 0U);
        EXPECT_EQ(distribution.shards()[0].boxes.back().axes()[0].end, expected[i]);
    }
}

TEST(Megatron, A05GivesEachDestinationItsRunsOfQAndKAndV) {
    // The same heads, TP4 to TP2. Destination 0 takes heads 0 to 15 and KV heads 0 to 3 from sources 0 and 1:
    // 2048 + 512 + 512 rows · 4096 · 2 B = 25,165,824 B.
    std::uint64_t rows = 0;
    for (const auto& parameter : projections({32, 8, 128, 128}, 4096)) {
        const auto from = megatron::distribution(parameter, train_tp(4));
        const auto to = vllm::distribution(parameter, generate_tp(2), 0);
        rows += common_rows(from, 0, to, 0) + common_rows(from, 1, to, 0);
        EXPECT_EQ(common_rows(from, 2, to, 0) + common_rows(from, 3, to, 0), 0U);
    }
    EXPECT_EQ(rows * 4096 * 2, 25'165'824U);
}

TEST(Megatron, A06CutsEachPartOfAFusedProjectionApart) {
    // Parts of 1024, 1024, 1536, 1536, 16 and 16 rows on TP2: 512 + 512 + 768 + 768 + 8 + 8 = 2576 rows in
    // six runs.
    ParameterClass parameter;
    parameter.shape = {5152, 4};
    parameter.sharding = Sharding::kColumn;
    parameter.segments = {1024, 1024, 1536, 1536, 16, 16};
    const auto distribution = megatron::distribution(parameter, train_tp(2));
    ASSERT_EQ(distribution.shards().size(), 2U);
    ASSERT_EQ(distribution.shards()[1].boxes.size(), 6U);
    EXPECT_EQ(rows_of(distribution, 1), 2576U);
    // Rank 1 has the second half of each part: the third begins at 2048 and ends at 3584.
    EXPECT_EQ(distribution.shards()[1].boxes[2].axes()[0], (Interval{2048 + 768, 3584}));
}

TEST(Megatron, A12HoldsOnlyRealVocabularyRowsOnTheLastRank) {
    // 151,936 rows on TP8, padded to a multiple of 1024: 152,576, 19,072 a rank. The last has
    // 151,936 - 7 · 19,072 = 18,432 real ones.
    ParameterClass parameter;
    parameter.shape = {151936, 2};
    parameter.sharding = Sharding::kVocabulary;
    const auto distribution = megatron::distribution(parameter, train_tp(8));
    EXPECT_EQ(rows_of(distribution, 0), 19072U);
    EXPECT_EQ(rows_of(distribution, 7), 18432U);
}

TEST(Megatron, A21CutsExpertsOverExpertTensorParallelism) {
    // Width 512 on ETP2: two holders of each expert, 256 rows each.
    ParameterClass parameter;
    parameter.shape = {512, 2048};
    parameter.sharding = Sharding::kColumn;
    parameter.experts = 4;
    TrainLayout layout;
    layout.etp = layout.gpus = layout.tp = 2;
    const auto distribution = megatron::distribution(parameter, layout);
    ASSERT_EQ(distribution.shards().size(), 2U);
    EXPECT_EQ(distribution.shards()[1].boxes.front().axes()[0], (Interval{0, 4}));
    EXPECT_EQ(distribution.shards()[1].boxes.front().axes()[1], (Interval{256, 512}));
}

TEST(Megatron, KeepsQueriesAndOutputGatesOfAGroupApartInTheFusedRows) {
    // 2 query heads of 2 + 2 rows in one group with k and v of 2: fused q0 q1 g0 g1 k v, 12 rows, while
    // q_proj stores q0 g0 q1 g1. TP4 gives rank 0 q0 and the first row of q1: rows 0, 1 and 4 of q_proj; rank
    // 1 the second row of q1 and g0: rows 5, 2 and 3; rank 2 g1 and the first row of k; rank 3 the rest of k
    // and v.
    const auto classes = projections({2, 1, 4, 2}, 3);
    const auto query = megatron::distribution(classes[0], train_tp(4));
    ASSERT_EQ(query.shards().size(), 3U);
    const std::vector<std::set<std::uint64_t>> expected{{0, 1, 4}, {2, 3, 5}, {6, 7}};
    for (std::size_t rank = 0; rank < 3; ++rank) {
        std::set<std::uint64_t> rows;
        for (const auto& box : query.shards()[rank].boxes) {
            for (auto row = box.axes()[0].begin; row < box.axes()[0].end; ++row) {
                rows.insert(row);
            }
        }
        EXPECT_EQ(rows, expected[rank]) << rank;
    }
    const auto key = megatron::distribution(classes[1], train_tp(4));
    EXPECT_EQ(rows_of(key, 2), 1U);
    EXPECT_EQ(rows_of(key, 3), 1U);
    EXPECT_EQ(rows_of(megatron::distribution(classes[2], train_tp(4)), 3), 2U);
}

TEST(Megatron, RunsExpertRanksThroughEtpThenEpThenReplicas) {
    // tp2.cp2.ep2.etp2 on 8 ranks: rank 6 = etp 0 of ep 1 of replica 1 holds experts 2 and 3, rows 0 to 1;
    // the dense ranks run tp first, so the same rank holds rows 0 to 1 of 4 with tp coordinate 0.
    ParameterClass expert;
    expert.shape = {4, 3};
    expert.sharding = Sharding::kColumn;
    expert.experts = 4;
    TrainLayout layout;
    layout.tp = layout.cp = layout.ep = layout.etp = layout.dp = layout.edp = 2;
    layout.gpus = 8;
    const auto experts = megatron::distribution(expert, layout);
    ASSERT_EQ(experts.shards().size(), 4U);
    EXPECT_EQ(experts.shards()[2].members, (std::vector<std::uint32_t>{2, 6}));
    EXPECT_EQ(experts.shards()[2].boxes.front().axes()[0], (Interval{2, 4}));
    EXPECT_EQ(experts.shards()[2].boxes.front().axes()[1], (Interval{0, 2}));
    auto dense = expert;
    dense.experts = 0;
    EXPECT_EQ(megatron::distribution(dense, layout).shards()[0].members,
              (std::vector<std::uint32_t>{0, 2, 4, 6}));
}

TEST(Megatron, LeavesOutARankWhoseVocabularyRowsAreAllPadding) {
    // 384 = 3 · 128 rows on TP8 padded to 1024, 128 a rank: three ranks have them, the others none.
    ParameterClass parameter;
    parameter.shape = {384, 1};
    parameter.sharding = Sharding::kVocabulary;
    auto distribution = megatron::distribution(parameter, train_tp(8));
    ASSERT_EQ(distribution.shards().size(), 3U);
    EXPECT_EQ(rows_of(distribution, 2), 128U);
    EXPECT_EQ(rows_of(distribution, 3), 0U);
    // 200 = 25 · 8 rows: the bridge takes 8 for a divisor, so that 224 = 7 · 32 are enough on TP4: 56, 56, 56, 32.
    parameter.shape = {200, 1};
    distribution = megatron::distribution(parameter, train_tp(4));
    ASSERT_EQ(distribution.shards().size(), 4U);
    EXPECT_EQ(rows_of(distribution, 3), 32U);
}

TEST(StoredElements, CountTheVocabularysPadding) {
    // As above: every rank stores 56 rows of 3.
    ParameterClass parameter;
    parameter.shape = {200, 3};
    parameter.sharding = Sharding::kVocabulary;
    for (std::uint32_t coordinate = 0; coordinate < 4; ++coordinate) {
        EXPECT_EQ(megatron::stored_elements(parameter, train_tp(4), coordinate), 168U);
    }
}

TEST(StoredElements, AreThoseOfTheShardElsewhere) {
    // DeepSeek-V3 on TP8.ETP2: o_proj 7168 x 16384 by column over 8, an expert's gate 2048 x 7168 over 2,
    // norms whole.
    const auto model = shipped("deepseek-v3");
    TrainLayout layout;
    layout.tp = layout.gpus = 8;
    layout.etp = 2;
    layout.ep = 4;
    const auto stored = [&](const char* name) {
        return megatron::stored_elements(testing_models::class_named(model, name), layout, 1);
    };
    EXPECT_EQ(stored("model.layers.{layer}.self_attn.o_proj.weight"), 7168U * 2048U);
    EXPECT_EQ(stored("model.layers.{layer}.mlp.experts.{expert}.gate_proj.weight"), 1024U * 7168U);
    EXPECT_EQ(stored("model.norm.weight"), 7168U);
}

}  // namespace
}  // namespace refit
