// SPDX-License-Identifier: Apache-2.0
#include "refit/ring.hpp"

#include <utility>

#include <gtest/gtest.h>

#include "../model/systems.hpp"
#include "../shipped.hpp"

namespace refit {
namespace {

TEST(SplitByDomain, KeepsTheRootsDomainFirstAndMeetsEachDomainOnce) {
    // Trainers 0-255 on nodes of 8. A group that leaves node 1 and comes back to it.
    const auto scenario = shipped_scenario("deepseek-v3-h100");
    const auto domains = split_by_domain(scenario.cluster, {RankId{9}, RankId{17}, RankId{10}, RankId{2}});
    ASSERT_EQ(domains.size(), 3U);
    EXPECT_EQ(domains[0], (std::vector{RankId{9}, RankId{10}}));
    EXPECT_EQ(domains[1], (std::vector{RankId{17}}));
    EXPECT_EQ(domains[2], (std::vector{RankId{2}}));
    EXPECT_EQ(fewest_members(domains), 1U);
}

/// Two domains of four, their rails by the places in them.
struct Ring {
    Cluster cluster;
    NicRoutes routes;
    std::vector<std::vector<RankId>> domains;
};
Ring ring_of(FabricSettings fabric, const std::vector<RankId>& group) {
    const auto system = testing_systems::system_of("four", 4);
    Cluster cluster{system, system, 4, 4, Placement{4, 4, true}, std::move(fabric)};
    NicRoutes routes{cluster};
    auto domains = split_by_domain(cluster, group);
    return {std::move(cluster), std::move(routes), std::move(domains)};
}
std::vector<RankId> ranks(std::initializer_list<std::uint32_t> list) {
    std::vector<RankId> group;
    for (const auto rank : list) {
        group.emplace_back(rank);
    }
    return group;
}

TEST(RingGates, LeaveOutNicsThatAreDown) {
    FabricSettings fabric;
    fabric.nics.emplace(1, std::nullopt);
    const auto ring = ring_of(fabric, ranks({0, 1, 2, 3, 4, 5, 6, 7}));
    const auto gates = ring_gates(ring.domains, ring.routes);
    EXPECT_EQ(gates, (RingGates{{0, 2, 3}, {0, 1, 2, 3}}));
    EXPECT_EQ(fewest_gates(gates), 3U);
    // The only member of its domain has to be one; a neighbour's NIC stands in.
    const auto thin = ring_of(fabric, ranks({1, 4, 5}));
    EXPECT_EQ(ring_gates(thin.domains, thin.routes), (RingGates{{0}, {0, 1}}));
}

TEST(RingGates, StayOnTheRailsThatAllDomainsHave) {
    FabricSettings fabric;
    fabric.is_rail_only = true;
    fabric.nics.emplace(1, std::nullopt);
    // Rails 0, 2 and 3 of domain 0, 1 to 3 of domain 1: rails 2 and 3 are common, at places 2 and 3, 1 and 2.
    const auto ring = ring_of(fabric, ranks({0, 1, 2, 3, 5, 6, 7}));
    EXPECT_EQ(ring_gates(ring.domains, ring.routes), (RingGates{{2, 3}, {1, 2}}));
    // No rail in common: NVLink has to bring each channel to a neighbour.
    const auto apart = ring_of(fabric, ranks({0, 3, 5, 6}));
    EXPECT_EQ(ring_gates(apart.domains, apart.routes), (RingGates{{0, 1}, {0, 1}}));
}

}  // namespace
}  // namespace refit
