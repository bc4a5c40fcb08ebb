// SPDX-License-Identifier: Apache-2.0
#include "refit/m2n_limits.hpp"

#include <string>

#include <gtest/gtest.h>

#include "m2n_cases.hpp"

namespace refit {
namespace {

using m2n_cases::blocks;
using m2n_cases::call;
using m2n_cases::replicate;
using m2n_cases::shard;

M2nSettings domains_of(std::uint32_t size) {
    M2nSettings settings;
    settings.domain_size = size;
    return settings;
}

std::vector<M2nRefusal> refusals(const M2nCall& one, const M2nSettings& settings = {}) {
    EXPECT_TRUE(m2n_faults(one, settings).empty());
    return m2n_refusals(one, settings);
}

/// The places of the faults, in order.
std::vector<std::string> places(const M2nCall& one, const M2nSettings& settings = {}) {
    std::vector<std::string> list;
    for (const auto& fault : m2n_faults(one, settings)) {
        EXPECT_EQ(fault.code, ErrorCode::kInvalidInput);
        list.push_back(fault.where);
    }
    return list;
}
using Places = std::vector<std::string>;

/// [8, 8] from 4 to 4 ranks.
M2nCall small() {
    return call({8, 8}, 2, blocks(1, 4, 0, 0), blocks(1, 4, 0, 4));
}

TEST(M2nLimits, SixteenSourcesPassAndSeventeenDoNot) {
    EXPECT_TRUE(refusals(call({272}, 1, blocks(1, 16, 0, 0), blocks(1, 1, 0, 16))).empty());
    const auto found = refusals(call({17, 2}, 1, blocks(1, 17, 0, 0), blocks(1, 2, 1, 17)));
    EXPECT_EQ(found,
              (std::vector{M2nRefusal{M2nLimit::kSources, M2nEnd::kDestination, 0, std::nullopt, 17, 16}}));
}

TEST(M2nLimits, SixtyFourTargetsPassAndSixtyFiveDoNot) {
    EXPECT_TRUE(refusals(call({64, 2}, 1, blocks(1, 2, 1, 0), blocks(1, 64, 0, 2))).empty());
    const auto found = refusals(call({65, 2}, 1, blocks(1, 2, 1, 0), blocks(1, 65, 0, 2)));
    EXPECT_EQ(found, (std::vector{M2nRefusal{M2nLimit::kTargets, M2nEnd::kSource, 0, std::nullopt, 65, 64}}));
}

TEST(M2nLimits, TheFirstShardThatExceedsIsNamed) {
    // 24 source shards of 1 row, 3 destination shards of 8 rows: 8 each. 51 rows over 51 and 3: 17 each,
    // shard 0.
    EXPECT_TRUE(refusals(call({24}, 1, blocks(1, 24, 0, 0), blocks(1, 3, 0, 24))).empty());
    EXPECT_EQ(refusals(call({51}, 1, blocks(1, 51, 0, 0), blocks(1, 3, 0, 51))).front().shard, 0U);
    // 33 over 2: rows of 2 and 33 in 66. Shard 0 covers 0 to 32, sources 0 to 16: 17.
    EXPECT_EQ(refusals(call({66}, 1, blocks(1, 33, 0, 0), blocks(1, 2, 0, 33))).front().found, 17U);
}

TEST(M2nLimits, ADomainHoldsOneLeaderAndOneHundredTwentyEightFollowers) {
    EXPECT_TRUE(refusals(call({8}, 1, blocks(1, 1, 0, 0), blocks(129, 1, 0, 1)), domains_of(256)).empty());
    const auto found = refusals(call({8, 2}, 1, blocks(2, 1, 0, 0), blocks(130, 2, 1, 2)), domains_of(512));
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0], (M2nRefusal{M2nLimit::kLocalFollowers, M2nEnd::kDestination, 0, 0, 130, 129}));
}

TEST(M2nLimits, FullDomainsPassAndTheDomainIsCountedFromRankZero) {
    EXPECT_TRUE(refusals(call({8}, 1, blocks(1, 2, 0, 0), blocks(258, 1, 0, 2)), domains_of(129)).empty());
    // 140 replicas from rank 300: domain 2 of 150.
    const auto found = refusals(call({8}, 1, blocks(1, 2, 0, 0), blocks(140, 1, 0, 300)), domains_of(150));
    EXPECT_EQ(found,
              (std::vector{M2nRefusal{M2nLimit::kLocalFollowers, M2nEnd::kDestination, 0, 2, 140, 129}}));
}

TEST(M2nLimits, FollowersAreCountedAsThePathLaysOutDomainsToo) {
    // 130 replicas from rank 2 in domains of 130: from rank 0 there are 128 in one and 2 in the next, but the
    // split path counts from rank 2.
    const auto one = call({8, 2}, 1, blocks(1, 2, 1, 0), blocks(130, 1, 1, 2));
    const auto found = refusals(one, domains_of(130));
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0], (M2nRefusal{M2nLimit::kLocalFollowers, M2nEnd::kDestination, 0, 0, 130, 129}));
    auto combined = domains_of(130);
    combined.path = M2nPath::kCombined;
    EXPECT_TRUE(refusals(one, combined).empty());
}

TEST(M2nLimits, StagingIsTheLargerSideAndAtMostTheLargestBucket) {
    // Sources hold a quarter, destinations half: 2^31 B fit, one row more does not.
    auto one = call({1U << 16U, 1U << 16U}, 1, blocks(1, 4, 0, 0), blocks(1, 2, 0, 4));
    EXPECT_TRUE(refusals(one).empty());
    one = call({(1U << 16U) + 4, 1U << 16U}, 1, blocks(1, 4, 0, 0), blocks(1, 2, 0, 4));
    const auto found = refusals(one);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].limit, M2nLimit::kStaging);
    EXPECT_EQ(found[0].found, (1ULL << 31U) + (1ULL << 17U));
    EXPECT_EQ(found[0].allowed, 1ULL << 31U);
    one = call({(1U << 16U) + 4, 1U << 16U}, 1, blocks(1, 2, 0, 0), blocks(1, 4, 0, 2));
    EXPECT_EQ(refusals(one), found);
}

TEST(M2nLimits, WhatM2nCannotDescribeIsNamedBySideWithNumbers) {
    auto one = small();
    one.source.mesh.axes = {2, 2};
    one.source.placements = {shard(0), shard(1)};
    EXPECT_EQ(
        refusals(one),
        (std::vector{M2nRefusal{M2nLimit::kShardAxes, M2nEnd::kSource, std::nullopt, std::nullopt, 2, 1}}));
    one.source.mesh.axes = {1, 2, 2};
    one.source.placements = {replicate(), replicate(), shard(1)};
    EXPECT_EQ(refusals(one).front(),
              (M2nRefusal{M2nLimit::kMeshAxes, M2nEnd::kSource, std::nullopt, std::nullopt, 3, 2}));
    // What both sides share is said of neither.
    const auto limits_of = [](const M2nCall& of) {
        std::vector<M2nLimit> limits;
        for (const auto& refusal : refusals(of)) {
            EXPECT_FALSE(refusal.end.has_value());
            limits.push_back(refusal.limit);
        }
        return limits;
    };
    const auto source = blocks(1, 2, 0, 0);
    const auto destination = blocks(1, 2, 0, 2);
    EXPECT_EQ(limits_of(call({2, 2, 2, 2}, 1, source, destination)), std::vector{M2nLimit::kTensorAxes});
    EXPECT_EQ(limits_of(call({8}, 3, source, destination)), std::vector{M2nLimit::kElementBytes});
    EXPECT_EQ(limits_of(call({8}, 16, source, destination)), std::vector{M2nLimit::kElementBytes});
    EXPECT_EQ(limits_of(call({8}, 8, source, destination)), std::vector<M2nLimit>{});
}

TEST(M2nLimits, PartsAreEqualBlocks) {
    // 10 rows over 4 leave 2.
    const auto uneven = refusals(call({10, 8}, 2, blocks(1, 4, 0, 0), blocks(1, 4, 1, 4)));
    EXPECT_EQ(uneven,
              (std::vector{
                  M2nRefusal{M2nLimit::kUnequalShards, M2nEnd::kSource, std::nullopt, std::nullopt, 2, 0}}));
    auto strided = small();
    strided.destination.placements[1] = {DtensorPlacement::Kind::kStridedShard, 0, 2};
    EXPECT_EQ(refusals(strided),
              (std::vector{M2nRefusal{
                  M2nLimit::kStridedShards, M2nEnd::kDestination, std::nullopt, std::nullopt, 2, 1}}));
    strided.destination.placements[1].split_factor = 1;  // strides of one block: a shard
    EXPECT_TRUE(refusals(strided).empty());
    EXPECT_EQ(normalised(strided.destination), normalised(small().destination));
}

TEST(M2nLimits, AFaultNamesTheRuleSetTheLimitAndBothNumbers) {
    const auto fault = to_fault({M2nLimit::kSources, M2nEnd::kDestination, 3, std::nullopt, 32, 16});
    EXPECT_EQ(fault.code, ErrorCode::kInfeasible);
    EXPECT_EQ(fault.rule, "MAX_SOURCES");
    EXPECT_EQ(fault.message,
              "destination shard 3 overlaps 32 source shards; M2N takes at most 16 [nccl-m2n@0.2]");
    EXPECT_EQ(fault.where, "/destination");
}

TEST(M2nLimits, EveryLimitHasANameAndASentence) {
    for (int i = 0; i <= static_cast<int>(M2nLimit::kStaging); ++i) {
        const auto fault = to_fault({static_cast<M2nLimit>(i), M2nEnd::kSource, 0, 0, 123, 45});
        EXPECT_FALSE(fault.rule.empty());
        EXPECT_NE(fault.message.find("123"), std::string::npos) << fault.message;
        EXPECT_TRUE(fault.message.ends_with(" [nccl-m2n@0.2]")) << fault.message;
    }
}

TEST(M2nFaults, EmptyExtentsMeshesAndElements) {
    auto one = small();
    one.source.shape[1] = 0;
    one.destination.shape[1] = 0;
    EXPECT_EQ(places(one), (Places{"/source/tensor_shape/1", "/destination/tensor_shape/1"}));
    one = small();
    one.source.mesh.axes[0] = 0;
    EXPECT_EQ(places(one), Places{"/source/mesh/0"});
    one = small();
    one.source.mesh.axes.clear();
    one.source.placements.clear();
    EXPECT_EQ(places(one), Places{"/source/mesh"});
    one = small();
    one.source.element_bytes = one.destination.element_bytes = 0;
    EXPECT_EQ(places(one), (Places{"/source/element_bytes", "/destination/element_bytes"}));
}

TEST(M2nFaults, PlacementsThatDoNotFitTheMeshOrTheTensor) {
    auto one = small();
    one.source.placements.pop_back();
    one.destination.placements[1] = shard(2);
    EXPECT_EQ(places(one), (Places{"/source/placements", "/destination/placements/1"}));
}

TEST(M2nFaults, ShapesAndDtypesThatDiffer) {
    auto one = small();
    one.destination.shape = {8, 4};
    one.destination.element_bytes = 1;
    EXPECT_EQ(places(one), (Places{"/destination/tensor_shape", "/destination/element_bytes"}));
}

TEST(M2nFaults, RanksThatOverlapOrLeaveTheCommunicator) {
    auto one = small();
    one.destination.mesh.first_rank = RankId{3};
    EXPECT_EQ(places(one), Places{"/destination/start_rank"});
    one.source.mesh.first_rank = RankId{7};
    one.destination.mesh.first_rank = RankId{4};
    EXPECT_EQ(places(one), Places{"/destination/start_rank"});
    one = small();
    one.communicator_ranks = 8;
    EXPECT_TRUE(places(one).empty());
    one.communicator_ranks = 7;
    EXPECT_EQ(places(one), Places{"/destination/mesh"});
}

TEST(M2nFaults, SizesThatDoNotFitTheirNumbers) {
    auto one = small();
    one.source.shape = one.destination.shape = {1ULL << 62U, 2};  // times 2 B is 2^64
    EXPECT_EQ(places(one), (Places{"/source/tensor_shape", "/destination/tensor_shape"}));
    one = small();
    one.source.mesh.axes = {1U << 31U, 1U << 31U};
    EXPECT_EQ(places(one), Places{"/source/mesh"});
    one.source.mesh.axes = {0xFFFF'FFFF, 0xFFFF'FFFF};
    one.destination.mesh.first_rank = RankId{0xFFFF'FFFF};
    EXPECT_EQ(places(one), (Places{"/source/mesh", "/destination/mesh"}));
}

}  // namespace
}  // namespace refit
