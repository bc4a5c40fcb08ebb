// SPDX-License-Identifier: Apache-2.0
#include "refit/distribution.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace refit {
namespace {

TEST(Shard, CountsTheElementsOfAllItsBoxes) {
    const auto whole = Box::whole(std::vector<std::uint64_t>{10, 4});
    const Shard shard{{whole.with(0, {0, 2}), whole.with(0, {5, 8})}, {1, 3}};
    EXPECT_EQ(shard.elements(), 20U);  // (2 + 3) rows of 4; replicas count once.
    EXPECT_EQ((Shard{{}, {0}}).elements(), 0U);
}

TEST(Distribution, KeepsItsShapeAndShardsAsGiven) {
    const std::vector<std::uint64_t> shape{10, 4};
    const auto whole = Box::whole(shape);
    const Distribution distribution{shape, {{{whole.with(1, {0, 2})}, {0}}, {{whole.with(1, {2, 4})}, {1}}}};
    ASSERT_EQ(distribution.shape().size(), 2U);
    EXPECT_EQ(distribution.shape()[0], 10U);
    ASSERT_EQ(distribution.shards().size(), 2U);
    EXPECT_EQ(distribution.shards()[1].members, std::vector<std::uint32_t>{1});
    EXPECT_EQ(distribution.shards()[1].elements(), 20U);  // 10 rows of 2.
}

}  // namespace
}  // namespace refit
