// SPDX-License-Identifier: Apache-2.0
#include "refit/link_reduction.hpp"

#include <gtest/gtest.h>

#include "random_network.hpp"
#include "refit/flow_run.hpp"

namespace refit {
namespace {

std::uint32_t add(FlowNetwork& network, double bytes, std::vector<LinkUse> uses) {
    Flow flow;
    flow.bytes = bytes;
    return network.add_flow(flow, uses);
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
        const auto whole = run_flows(network, {.has_quotient = false});
        const auto part = run_flows(reduced.network, {.has_quotient = false});
        ASSERT_EQ(whole.has_value(), part.has_value());
        for (std::uint32_t flow = 0; whole && flow < network.flows(); ++flow) {
            ASSERT_NEAR(part->end[flow], whole->end[flow], 1e-9 * whole->end[flow]);
        }
    }
    EXPECT_GT(dropped, 100U) << "random networks with links to drop";
}

}  // namespace
}  // namespace refit
