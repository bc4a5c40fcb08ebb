// SPDX-License-Identifier: Apache-2.0
#include "refit/nic_routes.hpp"

#include <utility>

#include <gtest/gtest.h>

#include "../model/systems.hpp"

namespace refit {
namespace {

/// Eight trainers and eight generators in nodes and domains of four: domains 0 and 1, then 2 and 3.
Cluster cluster_with(FabricSettings fabric) {
    const auto system = testing_systems::system_of("four", 4);
    return Cluster{system, system, 8, 8, Placement{4, 4, true}, std::move(fabric)};
}

FabricSettings with_down(std::initializer_list<std::uint32_t> ranks, bool is_rail_only = false) {
    FabricSettings fabric;
    fabric.is_rail_only = is_rail_only;
    for (const auto rank : ranks) {
        fabric.nics.emplace(rank, std::nullopt);
    }
    return fabric;
}

NicRoute between(const NicRoutes& routes, std::uint32_t source, std::uint32_t destination) {
    return routes.between(RankId{source}, RankId{destination}).value();
}
NicRoute route(std::uint32_t exit, std::uint32_t landing) {
    return {RankId{exit}, RankId{landing}};
}

TEST(NicRoutes, EveryNicServesItselfWhereAllReachAll) {
    FabricSettings slow;
    slow.nics.emplace(2, Bandwidth::gigabytes_per_second(10.0));
    for (const auto& fabric : {FabricSettings{}, slow}) {
        const NicRoutes routes{cluster_with(fabric)};
        EXPECT_TRUE(routes.is_plain());
        EXPECT_TRUE(routes.is_up(RankId{2}));
        EXPECT_EQ(between(routes, 2, 9), route(2, 9));
    }
}

TEST(NicRoutes, TheNextGpuOfTheDomainStandsInForOneThatIsDown) {
    const NicRoutes routes{cluster_with(with_down({3, 9, 10}))};
    EXPECT_FALSE(routes.is_plain());
    EXPECT_FALSE(routes.is_up(RankId{3}));
    EXPECT_EQ(between(routes, 2, 8), route(2, 8));
    EXPECT_EQ(between(routes, 3, 8), route(0, 8));   // from the last on to the first
    EXPECT_EQ(between(routes, 2, 9), route(2, 11));  // 10 is down as well
    EXPECT_EQ(between(routes, 3, 9), route(0, 11));
    EXPECT_EQ(between(routes, 9, 3), route(11, 0));
}

TEST(NicRoutes, OnRailsTheSendersNeighbourOnTheReceiversRailGoesFirst) {
    const NicRoutes routes{cluster_with(with_down({1, 13}, true))};
    EXPECT_EQ(routes.rail_of(RankId{6}), 2U);
    EXPECT_EQ(between(routes, 0, 8), route(0, 8));
    EXPECT_EQ(between(routes, 0, 10), route(2, 10));
    // Rail 1 of domain 0 is down: rank 9 is reached by whoever shares the sender's rail.
    EXPECT_EQ(between(routes, 0, 9), route(0, 8));
    // Both ends are down and on rail 1: the first rail of the sender's next GPU.
    EXPECT_EQ(between(routes, 1, 13), route(2, 14));
}

TEST(NicRoutes, TellsWhereNothingReaches) {
    const NicRoutes apart{cluster_with(with_down({0, 1, 10, 11}, true))};
    EXPECT_EQ(apart.between(RankId{2}, RankId{8}), std::nullopt);  // rails 2 and 3 here, 0 and 1 there
    EXPECT_EQ(between(apart, 2, 14), route(2, 14));
    const NicRoutes dead{cluster_with(with_down({0, 1, 2, 3}))};
    EXPECT_EQ(dead.between(RankId{2}, RankId{8}), std::nullopt);
}

}  // namespace
}  // namespace refit
