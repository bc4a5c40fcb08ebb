// SPDX-License-Identifier: Apache-2.0
#include "refit/link_reduction.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "random_network.hpp"
#include "refit/flow_run.hpp"

namespace refit {
namespace {

std::uint32_t add(FlowNetwork& network,
                  double bytes,
                  const std::vector<LinkUse>& uses,
                  const std::vector<std::uint32_t>& after = {}) {
    Flow flow;
    flow.bytes = bytes;
    return network.add_flow(flow, uses, after);
}

using Lanes = std::vector<std::uint32_t>;

void expect_same_times(const FlowNetwork& network, const ReducedNetwork& reduced) {
    const auto whole = run_flows(network, {.has_quotient = false});
    const auto part = run_flows(reduced.network, {.has_quotient = false, .has_segments = true});
    ASSERT_EQ(whole.has_value(), part.has_value());
    if (!whole) {
        return;
    }
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        ASSERT_NEAR(part->end[flow], whole->end[flow], 1e-9 * whole->end[flow]) << flow;
    }
    for (const auto& segment : part->segments) {
        if (segment.limit != RateSegment::kOwnCap) {
            const auto link = reduced.link_in_whole(segment.flow, segment.limit);
            const auto uses = network.uses(segment.flow);
            ASSERT_NE(std::ranges::find(uses, link, &LinkUse::link), uses.end());
        }
    }
}

// Links of 10, 20 and 10 B/s; one flow over all three takes 1 B of each for each byte: the first limits, the
// second has twice the room, the third is like the first.
TEST(LinkReduction, KeepsTheTightestOfLinksWithTheSameFlows) {
    FlowNetwork network;
    network.add_link(10.0);
    network.add_link(20.0);
    network.add_link(10.0);
    add(network, 100.0, {{0, 1.0}, {1, 1.0}, {2, 1.0}});
    const auto reduced = without_idle_links(network);
    EXPECT_EQ(reduced.kept, (std::vector<std::uint32_t>{0}));
    EXPECT_EQ(reduced.network.uses(0).size(), 1U);
    EXPECT_DOUBLE_EQ(run_flows(reduced.network).value().makespan, 10.0);
}

// Link 1 carries what link 0 does and one flow more, at the same rate: link 0 can go. Link 2 is used at half
// a byte a byte, so its 10 B/s are room for 20: it can go too.
TEST(LinkReduction, DropsALinkThatAnotherCovers) {
    FlowNetwork network;
    network.add_link(10.0);
    network.add_link(10.0);
    network.add_link(10.0);
    add(network, 100.0, {{0, 1.0}, {1, 1.0}, {2, 0.5}});
    add(network, 100.0, {{1, 1.0}});
    EXPECT_EQ(without_idle_links(network).kept, (std::vector<std::uint32_t>{1}));
}

TEST(LinkReduction, KeepsLinksThatLimitDifferentFlows) {
    FlowNetwork network;
    network.add_link(10.0);
    network.add_link(10.0);
    add(network, 100.0, {{0, 1.0}, {1, 0.4}});
    add(network, 100.0, {{0, 0.4}, {1, 1.0}});
    EXPECT_EQ(without_idle_links(network).kept.size(), 2U);
}

// Both links are alike until the second fails.
TEST(LinkReduction, KeepsALinkThatChanges) {
    FlowNetwork network;
    network.add_link(10.0);
    network.add_link(10.0);
    add(network, 100.0, {{0, 1.0}, {1, 1.0}});
    network.add_change({Seconds{5.0}, 1, 5.0});
    const auto reduced = without_idle_links(network);
    EXPECT_EQ(reduced.kept.size(), 2U);
    // 50 B in 5 s, the other 50 at 5 B/s.
    EXPECT_DOUBLE_EQ(run_flows(reduced.network).value().makespan, 15.0);
}

TEST(LinkReduction, DropsLinksWithoutFlows) {
    FlowNetwork network;
    network.add_link(10.0);
    network.add_link(10.0);
    add(network, 10.0, {{1, 1.0}});
    EXPECT_EQ(without_idle_links(network).kept, (std::vector<std::uint32_t>{1}));
}

TEST(LinkReduction, LeavesTheTimesOfRandomNetworksAsTheyAre) {
    std::uint32_t dropped = 0;
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
        SCOPED_TRACE(seed);
        const auto network = testing_support::random_network(seed);
        const auto reduced = without_idle_links(network);
        dropped += network.links() - reduced.network.links();
        expect_same_times(network, reduced);
    }
    EXPECT_GT(dropped, 100U) << "random networks with links to drop";
}

// While the first flow runs no other does, so both its links are alike then, and one will do; afterwards each
// has a flow of its own. 100 B at 10 B/s, twice.
TEST(LinkReduction, DropsAUseOfALinkThatOnlyLaterFlowsMakeUnlike) {
    FlowNetwork network;
    network.add_link(10.0);
    network.add_link(10.0);
    const auto first = add(network, 100.0, {{0, 1.0}, {1, 1.0}});
    add(network, 100.0, {{0, 1.0}}, {first});
    add(network, 100.0, {{1, 1.0}}, {first});
    const auto reduced = without_idle_links(network, Lanes{0, 0, 0});
    EXPECT_EQ(reduced.kept, (std::vector<std::uint32_t>{0, 1}));
    EXPECT_EQ(reduced.network.uses(first).size(), 1U);
    EXPECT_DOUBLE_EQ(run_flows(reduced.network).value().makespan, 20.0);
    // Of unlike lanes, they may meet for all that is known.
    EXPECT_EQ(without_idle_links(network, Lanes{0, 1, 2}).network.uses(first).size(), 2U);
    EXPECT_EQ(without_idle_links(network).network.uses(first).size(), 2U);
}

// The third flow waits for the first alone, so it may meet the second, whose 200 B then have link 1 to
// themselves: on it both have 5 B/s until the first is over, at 20 s; the rest takes the second, and the
// third on link 0, 10 s.
TEST(LinkReduction, KeepsApartWhatAFlowOfTheSameStepMayMeet) {
    FlowNetwork network;
    network.add_link(10.0);
    network.add_link(10.0);
    const auto first = add(network, 100.0, {{0, 1.0}, {1, 1.0}});
    add(network, 200.0, {{1, 1.0}});
    add(network, 100.0, {{0, 1.0}}, {first, first});  // named twice, it is one of the two all the same
    const auto reduced = without_idle_links(network, Lanes{0, 0, 0});
    EXPECT_EQ(reduced.kept.size(), 2U);
    EXPECT_EQ(run_flows(reduced.network).value().end, (std::vector<double>{20.0, 30.0, 30.0}));
}

// Flows 0 and 1 take turns on links that flow 2 uses alike all the time: one link with 0, 1 and 2. First 5
// B/s each for 20 s, then flow 1 alone for 10 s.
TEST(LinkReduction, TakesLinksAsOneWhoseOwnFlowsTakeTurns) {
    FlowNetwork network;
    network.add_link(10.0);
    network.add_link(10.0);
    add(network, 100.0, {{0, 1.0}});
    add(network, 100.0, {{1, 1.0}}, {0});
    add(network, 100.0, {{0, 1.0}, {1, 1.0}});
    const auto reduced = without_idle_links(network, Lanes{0, 0, 1});
    EXPECT_EQ(reduced.kept, (std::vector<std::uint32_t>{0}));
    EXPECT_EQ(reduced.link_in_whole(0, 0), 0U);
    EXPECT_EQ(reduced.link_in_whole(1, 0), 1U) << "the link that the flow really takes";
    EXPECT_EQ(reduced.network.uses(2).size(), 1U);
    EXPECT_EQ(run_flows(reduced.network).value().end, (std::vector<double>{20.0, 30.0, 20.0}));
}

// The same, but flow 2 takes half as much of the second link, or that link has another rate, or flow 1 does
// not wait.
TEST(LinkReduction, KeepsLinksApartThatAreUnlikeForACommonFlow) {
    for (const int unlike : {0, 1, 2}) {
        FlowNetwork network;
        network.add_link(10.0);
        network.add_link(unlike == 1 ? 9.0 : 10.0);
        add(network, 100.0, {{0, 1.0}});
        add(network, 100.0, {{1, 1.0}}, unlike == 2 ? Lanes{} : Lanes{0});
        add(network, 100.0, {{0, 1.0}, {1, unlike == 0 ? 0.5 : 1.0}});
        add(network, 1.0, {{0, 1.0}}, {1});
        const auto reduced = without_idle_links(network, Lanes{0, 0, 1, 0});
        EXPECT_EQ(reduced.kept.size(), 2U) << unlike;
        expect_same_times(network, reduced);
    }
}

/// Lanes of steps, each flow of which follows all of the step before; now and then one that does not.
FlowNetwork stepwise_network(std::uint64_t seed, Lanes& lanes) {
    std::mt19937_64 engine{seed};
    const auto below = [&](std::uint32_t count) { return static_cast<std::uint32_t>(engine() % count); };
    FlowNetwork network;
    const auto links = 2 + below(6);
    for (std::uint32_t link = 0; link < links; ++link) {
        network.add_link(below(3) == 0 ? 20.0 : 10.0);
    }
    std::vector<std::vector<LinkUse>> ways(2 + below(6));
    for (auto& way : ways) {
        for (std::uint32_t link = 0; link < links; ++link) {
            if (below(2) == 0 || (link + 1 == links && way.empty())) {
                way.push_back({link, below(4) == 0 ? 0.5 : 1.0});
            }
        }
    }
    std::vector<std::vector<std::uint32_t>> before(1 + below(3));
    for (std::uint32_t step = 2 + below(6); step > 0; --step) {
        for (std::uint32_t lane = 0; lane < before.size(); ++lane) {
            std::vector<std::uint32_t> flows;
            auto after = before[lane];
            if (below(3) == 0 && !after.empty()) {  // by way of a task that takes no link
                after = {network.add_flow({.bytes = 1.0, .rate_cap = 1.0}, {}, after)};
                lanes.push_back(lane);
            }
            for (std::uint32_t flow = 1 + below(3); flow > 0; --flow) {
                const bool is_stray = below(12) == 0;
                flows.push_back(add(network,
                                    10.0 * (1 + below(5)),
                                    ways[below(static_cast<std::uint32_t>(ways.size()))],
                                    is_stray && !after.empty() ? Lanes{after.front()} : after));
                lanes.push_back(lane);
            }
            before[lane] = std::move(flows);
        }
    }
    return network;
}

TEST(LinkReduction, LeavesTheTimesOfFlowsInStepsAsTheyAre) {
    std::size_t by_steps = 0;
    for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
        SCOPED_TRACE(seed);
        Lanes lanes;
        const auto network = stepwise_network(seed, lanes);
        const auto reduced = without_idle_links(network, lanes);
        by_steps += without_idle_links(network).network.all_uses() - reduced.network.all_uses();
        expect_same_times(network, reduced);
    }
    EXPECT_GT(by_steps, 10'000U) << "uses that only the order of flows lets go";
}

TEST(LinkReduction, LeavesTheTimesOfRandomNetworksInLanesAsTheyAre) {
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
        SCOPED_TRACE(seed);
        const auto network = testing_support::random_network(seed);
        Lanes lanes;
        for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
            lanes.push_back(flow % (1 + static_cast<std::uint32_t>(seed % 3)));
        }
        expect_same_times(network, without_idle_links(network, lanes));
    }
}

}  // namespace
}  // namespace refit
