// SPDX-License-Identifier: Apache-2.0
#include "refit/membership_cost.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "../shipped.hpp"

namespace refit {
namespace {

Constant ranged(double value, double low, double high) {
    Constant constant;
    constant.value = value;
    constant.low = low;
    constant.high = high;
    return constant;
}

/// Round figures, so that sums are plain: a + b N with a 1, 2, 4 and b 0.01, 0.02, 0.04.
MembershipConstants round_constants() {
    MembershipConstants constants;
    constants.shrink = ranged(1.0, 0.5, 1.5);
    constants.shrink_per_gpu = ranged(0.01, 0.005, 0.02);
    constants.grow = ranged(2.0, 1.5, 3.0);
    constants.grow_per_gpu = ranged(0.02, 0.01, 0.03);
    constants.rebuild = ranged(4.0, 3.0, 6.0);
    constants.rebuild_per_gpu = ranged(0.04, 0.02, 0.05);
    constants.setup_after_shrink = ranged(1.8, 1.5, 2.0);
    constants.setup_after_grow = ranged(1.2, 0.8, 2.2);
    constants.setup_after_rebuild = ranged(1.6, 0.7, 2.4);
    return constants;
}

MembershipChange members_changed(std::uint32_t lost, std::uint32_t gained) {
    MembershipChange change;
    change.replicas_before = 8;
    change.lost_replicas = lost;
    change.new_replicas = gained;
    return change;
}

void expect_time(const RangedTime& time, double value, double low, double high) {
    EXPECT_NEAR(time.value.value(), value, 1e-9);
    EXPECT_NEAR(time.low.value(), low, 1e-9);
    EXPECT_NEAR(time.high.value(), high, 1e-9);
}

const std::vector<CommunicatorKind> kOneOf100{{1, 100}};
const std::vector<CommunicatorKind> kOneOf90{{1, 90}};

/// 1 + 0.01 · 100 = 2 s, from 0.5 + 0.5 to 1.5 + 2; it had 100 ranks. Connections: those after a shrink.
TEST(MembershipCost, AShrinkCountsTheRanksThatThereWere) {
    const auto cost = membership_cost(
        MembershipWay::kShrinkAndGrow, members_changed(1, 0), kOneOf100, kOneOf90, round_constants());
    expect_time(cost.change, 2.0, 1.0, 3.5);
    expect_time(cost.setup, 1.8, 1.5, 2.0);
    expect_time(cost.lost(), 3.8, 2.5, 5.5);
}

/// 2 + 0.02 · 100 = 4 s, from 1.5 + 1 to 3 + 3; it then has 100 ranks.
TEST(MembershipCost, AGrowCountsTheRanksThatThereThenAre) {
    const auto cost = membership_cost(
        MembershipWay::kShrinkAndGrow, members_changed(0, 1), kOneOf90, kOneOf100, round_constants());
    expect_time(cost.change, 4.0, 2.5, 6.0);
    expect_time(cost.setup, 1.2, 0.8, 2.2);
}

/// 2 + (2 + 0.02 · 90 = 3.8) = 5.8 s, low 1 + 2.4, high 3.5 + 5.7; connections once: the larger of each end.
TEST(MembershipCost, BothFollowEachOtherAndConnectOnce) {
    const auto cost = membership_cost(
        MembershipWay::kShrinkAndGrow, members_changed(2, 1), kOneOf100, kOneOf90, round_constants());
    expect_time(cost.change, 5.8, 3.4, 9.2);
    expect_time(cost.setup, 1.8, 1.5, 2.2);
}

/// Three communicators, one of 90 and two of 50 ranks: (4 + 3.6) + 2 (4 + 2) = 19.6 s; high (6 + 4.5) + 2 (6
/// + 2.5) = 27.5 s; all at once the largest alone: 3 + 1.8. Connections of three: 3 · 1.6, from 0.7 to 3
/// · 2.4.
TEST(MembershipCost, ARebuildMakesEveryCommunicatorOnce) {
    const std::vector<CommunicatorKind> after{{1, 90}, {2, 50}};
    const auto cost =
        membership_cost(MembershipWay::kRebuild, members_changed(2, 1), kOneOf100, after, round_constants());
    expect_time(cost.change, 19.6, 4.8, 27.5);
    expect_time(cost.setup, 4.8, 0.7, 7.2);
}

TEST(MembershipCost, NothingThatChangesCostsNothing) {
    const auto cost = membership_cost(
        MembershipWay::kRebuild, members_changed(0, 0), kOneOf100, kOneOf100, round_constants());
    expect_time(cost.lost(), 0.0, 0.0, 0.0);
}

/// DeepSeek-V3 on 256 + 256 GPUs, 16 stages of 16 trainers: a broadcast of all 512, and 16 of 16 + 256 ranks.
TEST(MembershipCost, CountsCommunicatorsByMethod) {
    const auto scenario = shipped_scenario("deepseek-v3-h100");
    EXPECT_EQ(communicators_of(Method::kGatherBroadcast, scenario),
              (std::vector<CommunicatorKind>{{1, 512}}));
    EXPECT_EQ(communicators_of(Method::kHybrid, scenario),
              (std::vector<CommunicatorKind>{{1, 512}, {16, 272}}));
    EXPECT_EQ(count_of(communicators_of(Method::kHybrid, scenario)), 17U);
    EXPECT_EQ(communicators_of(Method::kM2n, scenario), (std::vector<CommunicatorKind>{{16, 272}}));
    EXPECT_EQ(communicators_of(Method::kStriped, scenario), (std::vector<CommunicatorKind>{{1, 512}}));
}

/// A root in each of 16 stages: with the stage's 16 trainers, with those 8 of its domain, or alone, and 256
/// generators.
TEST(MembershipCost, CountsCommunicatorsByTheEnginesBroadcast) {
    auto scenario = shipped_scenario("deepseek-v3-h100");
    auto& options = scenario.engine.options;
    const auto kind = [&] { return communicators_of(Method::kGatherBroadcast, scenario).front(); };
    options.broadcast_root = BroadcastRoot::kEachStage;
    EXPECT_EQ(kind(), (CommunicatorKind{16, 272}));
    options.broadcast_group = BroadcastGroup::kRootDomain;
    EXPECT_EQ(kind(), (CommunicatorKind{16, 264}));
    options.broadcast_group = BroadcastGroup::kGenerators;
    EXPECT_EQ(kind(), (CommunicatorKind{16, 257}));
    options.broadcast_group = BroadcastGroup::kPairs;
    EXPECT_EQ(kind(), (CommunicatorKind{1, 2}));
}

/// The demonstration of the published figures: 16 + 16 GPUs, one communicator; published 1.41 and 1.53 s for
/// its shrink.
TEST(MembershipCost, ThePublishedDemonstrationLiesWithinTheRange) {
    const auto constants = shipped_library().membership().value();
    const std::vector<CommunicatorKind> before{{1, 32}};
    const auto cost =
        membership_cost(MembershipWay::kShrinkAndGrow, members_changed(1, 0), before, before, constants);
    // 1.29 + 0.00163 · 32.
    EXPECT_NEAR(cost.change.value.value(), 1.34216, 1e-9);
    EXPECT_LE(cost.change.low.value(), 1.41);
    EXPECT_GE(cost.change.high.value(), 1.53);
}

}  // namespace
}  // namespace refit
