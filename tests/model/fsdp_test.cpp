// SPDX-License-Identifier: Apache-2.0
#include "refit/fsdp.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "refit/dtensor.hpp"
#include "refit/held_weights.hpp"
#include "refit/layout_check.hpp"
#include "shard_oracle.hpp"

namespace refit {
namespace {

using testing_models::class_named;
using testing_models::kShippedIds;
using testing_models::shipped;
using testing_models::shrunken;
using testing_models::test_name;
using testing_oracle::Held;
using testing_oracle::Sizes;
using Kind = DtensorPlacement::Kind;

TrainLayout layout_of(std::uint32_t ep, std::uint32_t fsdp, std::uint32_t dp, const Inventory& model) {
    LayoutText text;
    text.ep = ep;
    text.fsdp = fsdp;
    return make_train_layout(text, ep * fsdp * dp, model).value();
}

/// What each rank of PyTorch's mesh holds of a tensor, from PyTorch's own rules for meshes and placements.
/// Experts of one layer lie stacked: the mesh (dp, fsdp, ep) cuts them along dim 0 over ep and along dim 1
/// over fsdp. Other tensors lie on the mesh (dp, fsdp x ep).
std::vector<Held> held_by_pytorch(const ParameterClass& parameter, const TrainLayout& layout) {
    auto shape = parameter.shape;
    std::vector<std::uint64_t> mesh{layout.dp, std::uint64_t{layout.fsdp} * layout.ep};
    std::vector<DtensorPlacement> placements{{Kind::kReplicate, 0, 1}, {Kind::kShard, 0, 1}};
    if (parameter.is_expert()) {
        shape.insert(shape.begin(), parameter.experts);
        mesh = {layout.dp, layout.fsdp, layout.ep};
        placements = {{Kind::kReplicate, 0, 1}, {Kind::kShard, 1, 1}, {Kind::kShard, 0, 1}};
    }
    const std::vector<std::vector<std::uint64_t>> shapes{shape};
    std::vector<Held> held;
    const auto tensors = dtensor_map(shape, mesh, placements).value();
    for (const auto& tensor : tensors) {
        Held& own = held.emplace_back(parameter.elements() * parameter.tensors_per_layer(), 0);
        for (const auto& run : tensor.runs(shapes)) {
            for (std::uint64_t i = 0; i < run.count; ++i) {
                own.at(run.start + i) = 1;
            }
        }
    }
    return held;
}

class EveryModelOnFsdp : public testing::TestWithParam<const char*> {};

TEST_P(EveryModelOnFsdp, IsSharedOutAsPyTorchDoes) {
    const auto small = shrunken(GetParam());
    std::mt19937 random{20261129};
    Sizes any{random};
    for (int draws = 0; draws < 40; ++draws) {
        auto ep = any(small.model.experts() > 0 ? 5 : 1);
        while (small.model.experts() > 0 && small.model.experts() % ep != 0) {
            --ep;
        }
        const auto layout = layout_of(ep, any(7), any(3), small.model);
        for (const auto& parameter : small.model.payload()) {
            SCOPED_TRACE(describe(layout) + " " + parameter.name);
            const auto distribution = fsdp::distribution(parameter, layout);
            const auto size = parameter.elements() * parameter.tensors_per_layer();
            ASSERT_EQ(testing_oracle::shard_fault(distribution, size, layout.gpus), "");
            ASSERT_EQ(testing_oracle::held_by_all(distribution, size, layout.gpus),
                      held_by_pytorch(parameter, layout));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Models, EveryModelOnFsdp, testing::ValuesIn(kShippedIds), [](const auto& test) {
    return test_name(test.param);
});

TEST(Fsdp, CutsRowsInTheMiddleOfAHeadAndLeavesRanksWithoutAny) {
    // torch.chunk of 10 rows over 8: chunks of 2, so five ranks have some.
    ParameterClass parameter;
    parameter.shape = {10, 3};
    TrainLayout layout;
    layout.fsdp = 8;
    layout.dp = 2;
    layout.gpus = 16;
    const auto distribution = fsdp::distribution(parameter, layout);
    ASSERT_EQ(distribution.shards().size(), 5U);
    EXPECT_EQ(distribution.shards()[4].boxes[0].axes()[0], (Interval{8, 10}));
    EXPECT_EQ(distribution.shards()[4].members, (std::vector<std::uint32_t>{4, 12}));
    // 2 rows of 3.
    EXPECT_EQ(fsdp::gathered_elements(parameter, layout), 6U);
    // 10 over 4: 3, 3, 3 and 1; each contributes 3.
    layout.fsdp = 4;
    layout.dp = 4;
    EXPECT_EQ(fsdp::distribution(parameter, layout).shards()[3].elements(), 3U);
    EXPECT_EQ(fsdp::gathered_elements(parameter, layout), 9U);
}

TEST(Fsdp, SpreadsExpertsOverNeighboursAndCutsEachAcrossThem) {
    // 128 experts of 768 x 2048 over 4 x 2 ranks: rank 5 has place 1 in ep and chunk 1 of fsdp.
    const auto model = shipped("qwen3-30b-a3b");
    const auto layout = layout_of(4, 2, 1, model);
    const auto up = class_named(model, "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight");
    const auto distribution = fsdp::distribution(up, layout);
    ASSERT_EQ(distribution.shards().size(), 8U);
    const auto& shard = distribution.shards()[5];
    EXPECT_EQ(shard.members, (std::vector<std::uint32_t>{5}));
    EXPECT_EQ(shard.boxes[0].axes()[0], (Interval{32, 64}));
    EXPECT_EQ(shard.boxes[0].axes()[1], (Interval{384, 768}));
    EXPECT_EQ(shard.boxes[0].axes()[2], (Interval{0, 2048}));
    EXPECT_EQ(fsdp::gathered_elements(up, layout), 384U * 2048);
    // The embedding is cut over all eight: 151936 / 8 rows.
    EXPECT_EQ(fsdp::gathered_elements(class_named(model, "model.embed_tokens.weight"), layout),
              18992U * 2048);
}

TEST(Fsdp, FillsTheFirstRankMost) {
    // By elements, from PyTorch's rules: rank 0 holds as much as `fullest_rank` says, and nobody holds more.
    const auto small = shrunken("qwen3-30b-a3b");
    const auto layout = layout_of(3, 5, 1, small.model);
    std::vector<std::uint64_t> bytes(layout.gpus, 0);
    for (const auto& parameter : small.model.payload()) {
        const auto held = held_by_pytorch(parameter, layout);
        for (std::size_t rank = 0; rank < held.size(); ++rank) {
            const auto elements = static_cast<std::uint64_t>(std::ranges::count(held[rank], 1));
            bytes[rank] +=
                elements * size_of(parameter.dtype) * std::max<std::size_t>(parameter.layers.size(), 1);
        }
    }
    const auto fullest = fullest_rank(layout, small.model.payload());
    EXPECT_EQ(fullest.rank, 0U);
    EXPECT_EQ(fullest.bytes.count(), bytes[0]);
    EXPECT_EQ(std::ranges::max(bytes), bytes[0]);
    EXPECT_LT(bytes.back(), bytes[0]);
}

}  // namespace
}  // namespace refit
