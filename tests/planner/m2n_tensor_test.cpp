// SPDX-License-Identifier: Apache-2.0
#include "refit/m2n_tensor.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

#include "m2n_cases.hpp"

namespace refit {
namespace {

using m2n_cases::blocks;
using m2n_cases::replicate;
using m2n_cases::shard;
using m2n_cases::Side;

M2nSide side_of(const Side& side) {
    return normalised(m2n_cases::call({8, 8}, 1, side, blocks(1, 1, 0, 1000)).source);
}

TEST(M2nTensor, BlocksOfShardsRepeatForEachReplica) {
    // 3 replicas of 4 from rank 10: shard 2 of replica 1 is 10 + 4 + 2.
    const auto side = side_of(blocks(3, 4, 1, 10));
    EXPECT_EQ(side, (M2nSide{RankId{10}, 4, 3, 1, true}));
    EXPECT_EQ(side.rank_of(2, 1), RankId{16});
    EXPECT_EQ(side.ranks(), 12U);
}

TEST(M2nTensor, ReplicasMayBeNeighbours) {
    // 4 shards of 3 neighbours: shard 2, replica 1 is 10 + 2 x 3 + 1.
    const auto side = side_of(m2n_cases::strided(4, 3, 0, 10));
    EXPECT_EQ(side, (M2nSide{RankId{10}, 4, 3, 0, false}));
    EXPECT_EQ(side.rank_of(2, 1), RankId{17});
}

TEST(M2nTensor, AMeshOfOneAxisIsNormalised) {
    const auto cut = side_of({{4}, {shard(1)}, 0});
    EXPECT_EQ(cut, (M2nSide{RankId{0}, 4, 1, 1, false}));
    EXPECT_EQ(cut.rank_of(3, 0), RankId{3});
    const auto whole = side_of({{4}, {replicate()}, 0});
    EXPECT_EQ(whole, (M2nSide{RankId{0}, 1, 4, 0, true}));
    EXPECT_EQ(whole.rank_of(0, 3), RankId{3});
    EXPECT_TRUE(whole.is_whole());
}

TEST(M2nTensor, ReplicationOnBothAxesIsOneShard) {
    EXPECT_EQ(side_of({{2, 4}, {replicate(), replicate()}, 0}), (M2nSide{RankId{0}, 1, 8, 0, true}));
}

TEST(M2nTensor, ACommunicatorReachesToTheLastRankUnlessItIsLarger) {
    auto call = m2n_cases::call({8}, 1, blocks(1, 4, 0, 0), blocks(2, 4, 0, 6));
    EXPECT_EQ(call.ranks(), 14U);
    call.communicator_ranks = 20;
    EXPECT_EQ(call.ranks(), 20U);
}

TEST(M2nTensor, RanksOfAMeshAreCountedWithoutOverflow) {
    EXPECT_EQ((M2nMesh{{1U << 31U, 4}, RankId{0}}.ranks()), 1ULL << 33U);
    EXPECT_THROW((void)(M2nMesh{{1U << 31U, 1U << 31U, 8}, RankId{0}}.ranks()), std::overflow_error);
}

}  // namespace
}  // namespace refit
