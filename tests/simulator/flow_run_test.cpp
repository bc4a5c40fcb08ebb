// SPDX-License-Identifier: Apache-2.0
#include "refit/flow_run.hpp"

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace refit {
namespace {

using Uses = std::vector<LinkUse>;

FlowRun run(const FlowNetwork& network, FlowOptions options = {}) {
    auto result = run_flows(network, options);
    EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().front().message);
    return result.value_or(FlowRun{});
}

TEST(FlowRun, OfNothingIsEmpty) {
    const auto result = run(FlowNetwork{});
    EXPECT_TRUE(result.end.empty());
    EXPECT_EQ(result.makespan, 0.0);
}

TEST(FlowRun, SharesALinkEvenlyAndGivesOnWhatIsLeft) {
    // 10 B/s, flows of 20 and 40 B: 5 B/s each until 4 s; the second then has 20 B left at 10 B/s: 6 s.
    FlowNetwork network;
    network.add_link(10.0);
    network.add_flow({.bytes = 20.0}, Uses{{0}});
    network.add_flow({.bytes = 40.0}, Uses{{0}});
    const auto result = run(network);
    EXPECT_DOUBLE_EQ(result.end[0], 4.0);
    EXPECT_DOUBLE_EQ(result.end[1], 6.0);
    EXPECT_DOUBLE_EQ(result.makespan, 6.0);
    EXPECT_EQ(result.start, (std::vector<double>{0.0, 0.0}));
}

// Flows of 1, 2, ..., n B: when the one of i B is over, the shorter ones have had all theirs and the n - i longer ones i B
// each. An event that looked at every flow would make this take minutes.
TEST(FlowRun, TakesManyFlowsOverOneLink) {
    constexpr std::uint32_t kFlows = 200'000;
    FlowNetwork network;
    network.add_link(8.0);
    for (std::uint32_t i = 1; i <= kFlows; ++i) {
        network.add_flow({.bytes = static_cast<double>(i)}, Uses{{0}});
    }
    const auto result = run(network);
    for (const std::uint32_t i : {1U, 2U, 1'000U, 100'000U, kFlows}) {
        const double shorter = 0.5 * i * (i + 1.0);
        const double longer = static_cast<double>(kFlows - i) * i;
        EXPECT_NEAR(result.end[i - 1], (shorter + longer) / 8.0, 1e-9 * result.end[i - 1]) << i;
    }
}

TEST(FlowRun, SharesByWeight) {
    // 12 B/s at weights 1 and 2: 4 and 8 B/s. 16 B at 4: 4 s; 32 B at 8: 4 s.
    FlowNetwork network;
    network.add_link(12.0);
    network.add_flow({.bytes = 16.0}, Uses{{0}});
    network.add_flow({.bytes = 32.0, .weight = 2.0}, Uses{{0}});
    const auto result = run(network);
    EXPECT_DOUBLE_EQ(result.end[0], 4.0);
    EXPECT_DOUBLE_EQ(result.end[1], 4.0);
}

TEST(FlowRun, GivesWhatACappedFlowLeavesToTheOthers) {
    // 10 B/s, one flow capped at 2 B/s: the other gets 8 B/s. 8 B take 4 s, 32 B take 4 s.
    FlowNetwork network;
    network.add_link(10.0);
    network.add_flow({.bytes = 8.0, .rate_cap = 2.0}, Uses{{0}});
    network.add_flow({.bytes = 32.0}, Uses{{0}});
    const auto result = run(network);
    EXPECT_DOUBLE_EQ(result.end[0], 4.0);
    EXPECT_DOUBLE_EQ(result.end[1], 4.0);
}

TEST(FlowRun, CountsUsesPerByte) {
    // A relay takes its 10 B/s link twice a byte: beside a plain flow, 3 x rate = 10, so 10/3 B/s each.
    // Both of 10 B: 3 s.
    FlowNetwork network;
    network.add_link(10.0);
    network.add_flow({.bytes = 10.0}, Uses{{0, 2.0}});
    network.add_flow({.bytes = 10.0}, Uses{{0, 1.0}});
    const auto result = run(network);
    EXPECT_DOUBLE_EQ(result.end[0], 3.0);
    EXPECT_DOUBLE_EQ(result.end[1], 3.0);
}

TEST(FlowRun, IsSlowedByTheSlowestOfManyLinks) {
    // Flow 0 over links of 9, 2 and 6 B/s runs at 2 B/s; flow 1 gets the other 7 of link 0, flow 2 the other
    // 4 of link 2. 8 B at 2: 4 s; 28 at 7: 4 s; 16 at 4: 4 s.
    FlowNetwork network;
    network.add_link(9.0);
    network.add_link(2.0);
    network.add_link(6.0);
    network.add_flow({.bytes = 8.0}, Uses{{0}, {1}, {2}});
    network.add_flow({.bytes = 28.0}, Uses{{0}});
    network.add_flow({.bytes = 16.0}, Uses{{2}});
    EXPECT_EQ(run(network).end, (std::vector<double>{4.0, 4.0, 4.0}));
}

TEST(FlowRun, StartsAfterWhatItFollowsAndItsLatency) {
    // 10 B at 10 B/s: 1 s. Its follower: from 1 + 0.5 s to 2.5 s. One that may start at 3 s: 3.5 to 4.5 s.
    FlowNetwork network;
    network.add_link(10.0);
    network.add_flow({.bytes = 10.0}, Uses{{0}});
    network.add_flow({.bytes = 10.0, .latency = Seconds{0.5}}, Uses{{0}}, std::array{0U});
    network.add_flow(
        {.bytes = 10.0, .earliest = Seconds{3.0}, .latency = Seconds{0.5}}, Uses{{0}}, std::array{0U, 1U});
    const auto result = run(network);
    EXPECT_EQ(result.start, (std::vector<double>{0.0, 1.5, 3.5}));
    EXPECT_EQ(result.end, (std::vector<double>{1.0, 2.5, 4.5}));
}

TEST(FlowRun, EndsAFlowOfNoBytesAsItStarts) {
    FlowNetwork network;
    network.add_link(10.0);
    network.add_flow({.latency = Seconds{0.25}}, Uses{{0}});
    network.add_flow({.bytes = 10.0}, Uses{{0}}, std::array{0U});
    const auto result = run(network);
    EXPECT_EQ(result.end, (std::vector<double>{0.25, 1.25}));
}

TEST(FlowRun, TakesAFlowWithoutLinksAsADelay) {
    FlowNetwork network;
    network.add_flow({.bytes = 3.0, .rate_cap = 2.0}, {});
    EXPECT_EQ(run(network).end, (std::vector<double>{1.5}));
}

TEST(FlowRun, FollowsALinkThatChangesFailsAndComesBack) {
    // 10 B/s until 1 s, 5 B/s until 2 s, down until 4 s, then 20 B/s: 35 B are 10 + 5 + 0 + 20, over at 5 s.
    FlowNetwork network;
    network.add_link(10.0);
    network.add_flow({.bytes = 35.0}, Uses{{0}});
    network.add_change({Seconds{4.0}, 0, 20.0});
    network.add_change({Seconds{1.0}, 0, 5.0});
    network.add_change({Seconds{2.0}, 0, std::nullopt});
    const auto result = run(network, {.has_segments = true});
    EXPECT_DOUBLE_EQ(result.end[0], 5.0);
    ASSERT_EQ(result.segments.size(), 4U);
    EXPECT_EQ(result.segments[2].rate, 0.0);
    EXPECT_EQ(result.segments[2].limit, 0U);
    EXPECT_EQ(result.segments[3].rate, 20.0);
}

TEST(FlowRun, IsInfeasibleWhereALinkStaysDown) {
    FlowNetwork network;
    network.add_link(10.0);
    network.add_flow({.bytes = 35.0}, Uses{{0}});
    network.add_change({Seconds{1.0}, 0, std::nullopt});
    const auto result = run_flows(network);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().front().code, ErrorCode::kInfeasible);
    EXPECT_EQ(result.error().front().message, "link 0 stays down under flow 0");
}

TEST(FlowRun, TellsTheFaultsOfItsNetwork) {
    FlowNetwork network;
    network.add_link(0.0);
    const auto result = run_flows(network);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().front().code, ErrorCode::kInvalidInput);
}

TEST(FlowRun, RefusesAToleranceOutOfRange) {
    for (const double tolerance : {-0.001, 0.11, std::nan("")}) {
        const auto result = run_flows(FlowNetwork{}, {.tolerance = tolerance});
        ASSERT_FALSE(result.has_value());
        EXPECT_EQ(result.error().front().rule, "flow-tolerance");
    }
}

TEST(FlowRun, EndsFlowsTogetherThatNearlyAreOver) {
    // 50 and 50.4 B at 5 B/s: 10 s; then 0.4 B at 10 B/s, 10.04 s. With 1 % of tolerance the 0.4 B, 0.8 % of
    // the flow, run beside at the 5 B/s that the flow has: 10.08 s.
    FlowNetwork network;
    network.add_link(10.0);
    network.add_flow({.bytes = 50.0}, Uses{{0}});
    network.add_flow({.bytes = 50.4}, Uses{{0}});
    const auto exact = run(network);
    EXPECT_DOUBLE_EQ(exact.end[1], 10.04);
    const auto fast = run(network, {.tolerance = 0.01});
    EXPECT_DOUBLE_EQ(fast.end[0], 10.0);
    EXPECT_DOUBLE_EQ(fast.end[1], 10.08);
    EXPECT_DOUBLE_EQ(fast.makespan, 10.08);
    EXPECT_EQ(fast.events + 1, exact.events);
    // 0.5 % is too little for it.
    EXPECT_EQ(run(network, {.tolerance = 0.005}).end, exact.end);
}

TEST(FlowRun, EndsNoFlowEarlyOfWhichMuchIsLeft) {
    // The first flow ends at 10 s. The second, of 0.5 B from 9.99 s at 10 B/s, is over at 10.04 s: within 1 %
    // of the time, but 80 % of it are left at 10 s.
    FlowNetwork network;
    network.add_link(10.0);
    network.add_link(10.0);
    network.add_flow({.bytes = 100.0}, Uses{{0}});
    network.add_flow({.bytes = 0.5, .earliest = Seconds{9.99}}, Uses{{1}});
    EXPECT_EQ(run(network, {.tolerance = 0.01}).events, run(network).events);
}

TEST(FlowRun, CanBeCancelled) {
    FlowNetwork network;
    network.add_link(10.0);
    network.add_flow({.bytes = 20.0}, Uses{{0}});
    const auto result = run_flows(network, {.is_cancelled = [] { return true; }});
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().front().code, ErrorCode::kInfeasible);
    EXPECT_EQ(result.error().front().message, "cancelled");
}

}  // namespace
}  // namespace refit
