// SPDX-License-Identifier: Apache-2.0
#include "refit/flow_network.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace refit {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The rules of the faults, each with its place.
std::vector<std::string> told(const FlowNetwork& network) {
    std::vector<std::string> places;
    for (const auto& fault : network.faults()) {
        EXPECT_EQ(fault.code, ErrorCode::kInvalidInput);
        EXPECT_FALSE(fault.message.empty());
        places.push_back(fault.rule + " @ " + fault.where);
    }
    return places;
}

using Places = std::vector<std::string>;

TEST(FlowNetwork, GivesBackWhatWasPutIn) {
    FlowNetwork network;
    EXPECT_EQ(network.add_link(3.0), 0U);
    EXPECT_EQ(network.add_link(5.0), 1U);
    EXPECT_EQ(network.add_flow({.bytes = 7.0, .weight = 2.0}, std::array{LinkUse{1, 0.5}, LinkUse{0}}), 0U);
    EXPECT_EQ(network.add_flow({.bytes = 1.0, .rate_cap = 4.0}, {}, std::array{0U}), 1U);
    network.add_change({Seconds{2.0}, 0, std::nullopt});
    EXPECT_EQ(network.links(), 2U);
    EXPECT_EQ(network.flows(), 2U);
    EXPECT_EQ(network.rate(1), 5.0);
    EXPECT_EQ(network.flow(0).weight, 2.0);
    ASSERT_EQ(network.uses(0).size(), 2U);
    EXPECT_EQ(network.uses(0)[0], (LinkUse{1, 0.5}));
    EXPECT_TRUE(network.uses(1).empty());
    EXPECT_TRUE(network.after(0).empty());
    ASSERT_EQ(network.after(1).size(), 1U);
    EXPECT_EQ(network.after(1)[0], 0U);
    EXPECT_EQ(network.changes().size(), 1U);
    EXPECT_TRUE(network.faults().empty());
}

TEST(FlowNetwork, LetsFlowsShareAWay) {
    FlowNetwork network;
    network.add_link(3.0);
    network.add_link(5.0);
    network.add_flow({.bytes = 1.0}, std::array{LinkUse{1}});
    EXPECT_TRUE(network.has_own_ways());
    const auto way = network.add_way(std::array{LinkUse{0}, LinkUse{1, 0.5}});
    EXPECT_FALSE(network.has_own_ways());
    EXPECT_EQ(network.add_flow_on(way, {.bytes = 2.0}, std::array{0U}), 1U);
    EXPECT_EQ(network.add_flow({.bytes = 3.0}, std::array{LinkUse{0}}), 2U);
    EXPECT_EQ(network.add_flow_on(way, {.bytes = 4.0}), 3U);
    EXPECT_EQ(network.ways(), 3U);
    EXPECT_EQ(network.all_uses(), 6U);  // 1 + 2 + 1 + 2
    EXPECT_EQ(network.uses(0)[0], (LinkUse{1}));
    EXPECT_EQ(network.uses(1)[1], (LinkUse{1, 0.5}));
    EXPECT_EQ(network.uses(2)[0], (LinkUse{0}));
    EXPECT_EQ(network.uses(3)[0], (LinkUse{0}));
    EXPECT_EQ(network.after(1)[0], 0U);
    EXPECT_EQ(network.way_of(3), network.way_of(1));
    EXPECT_TRUE(network.faults().empty());
    EXPECT_THROW(network.add_flow_on(3, {.bytes = 1.0}), std::logic_error);
}

TEST(FlowNetwork, AcceptsAFlowThatFollowsALaterOne) {
    FlowNetwork network;
    network.add_link(1.0);
    network.add_flow({.bytes = 1.0}, std::array{LinkUse{0}}, std::array{1U});
    network.add_flow({.bytes = 1.0}, std::array{LinkUse{0}});
    EXPECT_TRUE(network.faults().empty());
}

TEST(FlowNetwork, RefusesLinksWithoutAUsableRate) {
    FlowNetwork network;
    for (const double rate : {0.0, -1.0, kNan, kInfinity, 1.0}) {
        network.add_link(rate);
    }
    EXPECT_EQ(
        told(network),
        (Places{"link-rate @ link 0", "link-rate @ link 1", "link-rate @ link 2", "link-rate @ link 3"}));
}

TEST(FlowNetwork, RefusesEveryNumberOfAFlowThatIsOutOfRange) {
    FlowNetwork network;
    network.add_link(1.0);
    const std::array uses{LinkUse{0}};
    network.add_flow({.bytes = -1.0}, uses);
    network.add_flow({.bytes = kInfinity}, uses);
    network.add_flow({.bytes = 1.0, .weight = 0.0}, uses);
    network.add_flow({.bytes = 1.0, .rate_cap = kNan}, uses);
    network.add_flow({.bytes = 1.0, .earliest = Seconds{-1.0}}, uses);
    network.add_flow({.bytes = kNan, .latency = Seconds{kNan}}, uses);
    EXPECT_EQ(told(network),
              (Places{"flow-bytes @ flow 0",
                      "flow-bytes @ flow 1",
                      "flow-weight @ flow 2",
                      "flow-cap @ flow 3",
                      "flow-time @ flow 4",
                      "flow-bytes @ flow 5",
                      "flow-time @ flow 5"}));
}

TEST(FlowNetwork, RefusesPathsThatDoNotExist) {
    FlowNetwork network;
    network.add_link(1.0);
    network.add_flow({.bytes = 1.0}, {});
    network.add_flow({.bytes = 1.0}, std::array{LinkUse{1}});
    network.add_flow({.bytes = 1.0}, std::array{LinkUse{0}, LinkUse{0}});
    network.add_flow({.bytes = 1.0}, std::array{LinkUse{0, 0.0}});
    network.add_flow({.bytes = 1.0}, std::array{LinkUse{0}}, std::array{9U});
    EXPECT_EQ(told(network),
              (Places{"flow-path @ flow 0",
                      "flow-link @ flow 1",
                      "flow-link @ flow 2",
                      "flow-use @ flow 3",
                      "flow-after @ flow 4"}));
}

TEST(FlowNetwork, RefusesChangesOutOfRange) {
    FlowNetwork network;
    network.add_link(1.0);
    network.add_change({Seconds{0.0}, 1, 1.0});
    network.add_change({Seconds{kNan}, 0, 1.0});
    network.add_change({Seconds{1.0}, 0, 0.0});
    network.add_change({Seconds{1.0}, 0, std::nullopt});
    EXPECT_EQ(told(network),
              (Places{"change-link @ change 0", "change-time @ change 1", "change-rate @ change 2"}));
}

TEST(FlowNetwork, NamesTheFlowsThatWaitForEachOther) {
    // 1 -> 2 -> 3 -> 1 wait in a circle, 0 behind them; 4 and 5 are fine; 6 waits for itself.
    FlowNetwork network;
    network.add_link(1.0);
    const auto add = [&](std::vector<std::uint32_t> after) {
        network.add_flow({.bytes = 1.0}, std::array{LinkUse{0}}, after);
    };
    add({1});
    add({4, 2});
    add({3});
    add({1});
    add({});
    add({4});
    add({6});
    EXPECT_EQ(told(network), (Places{"flow-cycle @ flow 1", "flow-cycle @ flow 6"}));
    EXPECT_EQ(network.faults()[0].message, "flows wait for each other: 1 after 2 after 3 after 1");
}

TEST(FlowNetwork, StopsTellingAfterAHundredFaults) {
    FlowNetwork network;
    for (int i = 0; i < 250; ++i) {
        network.add_link(0.0);
    }
    const auto faults = network.faults();
    ASSERT_EQ(faults.size(), 101U);
    EXPECT_EQ(faults.back().message, "150 more faults");
}

}  // namespace
}  // namespace refit
