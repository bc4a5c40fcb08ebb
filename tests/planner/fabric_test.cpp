// SPDX-License-Identifier: Apache-2.0
#include "refit/fabric.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

#include "../shipped.hpp"

namespace refit {
namespace {

TEST(Fabric, SumsThePortsOfEachDomain) {
    const Fabric fabric{{0, 1, 0}, {{1.0, 2.0, 3.0, 4.0}, {10.0, 20.0, 30.0, 40.0}, {100.0, 200.0, 300.0, 400.0}}};
    EXPECT_EQ(fabric.domains(), 2U);
    EXPECT_EQ(fabric.members(0), (std::vector<std::uint32_t>{0, 2}));
    EXPECT_EQ(fabric.domain_ports(0), (GpuPorts{101.0, 202.0, 303.0, 404.0}));
    EXPECT_EQ(fabric.domain_of(1), 1U);
}

TEST(Fabric, FollowsTheCluster) {
    // DGX H100: 400 Gbit/s and 450 GB/s a direction and GPU; half of it at efficiency 0.5.
    const auto scenario = shipped_scenario("deepseek-v3-h100");
    const Fabric fabric{scenario.cluster, port_rates(scenario.cluster, 0.5, 0.5)};
    EXPECT_EQ(fabric.ranks(), 512U);
    EXPECT_EQ(fabric.domains(), 64U);
    EXPECT_EQ(fabric.domain_of(256), 32U);
    EXPECT_EQ(fabric.ports(300), (GpuPorts{25e9, 25e9, 225e9, 225e9}));
}

TEST(Fabric, KnowsPodsAndRails) {
    const std::vector<GpuPorts> ports(4, {1.0, 1.0, 1.0, 1.0});
    const Fabric flat{{0, 0, 1, 1}, ports};
    EXPECT_EQ(flat.pod_of(1), 0U);
    EXPECT_TRUE(flat.is_connected(0, 3));
    const Fabric spine{{0, 0, 1, 1}, ports, Spine{{0, 1}, {5.0, 5.0}, {5.0, 5.0}, 2}};
    EXPECT_EQ(spine.pod_of(1), 1U);
    EXPECT_TRUE(spine.is_connected(0, 2));
    EXPECT_FALSE(spine.is_connected(0, 3));
    EXPECT_THROW((Fabric{{0, 0, 1, 1}, ports, Spine{{0}, {5.0}, {5.0}, 0}}), std::logic_error);
}

TEST(Fabric, WantsPortsForEachRank) {
    EXPECT_THROW((Fabric{{0, 0}, {{1.0, 1.0, 1.0, 1.0}}}), std::logic_error);
    EXPECT_THROW((Fabric{{}, {}}), std::logic_error);
}

TEST(Fabric, TakesPodsRailsAndNicsFromTheScenario) {
    // 8 nodes a pod: 64 NICs of 50 GB/s at 0.94 over 2; trainers in pods 0 to 3, generators in 4 to 7. Dead NICs do not
    // make uplinks slower.
    const auto scenario = shipped_scenario("deepseek-v3-h100", {{"fabric.domains_per_pod", "8"},
                                                                {"fabric.oversubscription", "2:1"},
                                                                {"fabric.rail_only", "true"},
                                                                {"fabric.nics.trainer:9", "down"},
                                                                {"fabric.nics.generation:1", "100Gbit/s"}});
    const auto fabric = make_fabric(scenario);
    ASSERT_EQ(fabric.spine().pods(), 8U);
    EXPECT_NEAR(fabric.spine().up[0], 64 * 47e9 / 2, 1.0);
    EXPECT_EQ(fabric.spine().up, fabric.spine().down);
    EXPECT_EQ(fabric.pod_of(63), 7U);
    EXPECT_EQ(fabric.ports(9), (GpuPorts{0.0, 0.0, fabric.ports(8).nvlink_out, fabric.ports(8).nvlink_in}));
    EXPECT_NEAR(fabric.ports(257).nic_in, 47e9 / 4, 1.0);
    EXPECT_TRUE(fabric.is_connected(1, 257));
    EXPECT_FALSE(fabric.is_connected(1, 258));
    EXPECT_EQ(make_fabric(scenario.cluster, 1.0, 1.0).ports(8).nic_out, 50e9);
}

}  // namespace
}  // namespace refit
