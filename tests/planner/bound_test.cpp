// SPDX-License-Identifier: Apache-2.0
#include "refit/bound.hpp"

#include <gtest/gtest.h>

#include "../shipped.hpp"

namespace refit {
namespace {

Bound bound_at(const Scenario& scenario, double efficiency) {
    return lower_bound(SliceTable::make(Workload::make(scenario), scenario.cluster.train_gpus()),
                       Fabric{scenario.cluster, port_rates(scenario.cluster, efficiency, efficiency)});
}
Bound line_rate_bound(const Scenario& scenario) { return bound_at(scenario, 1.0); }

TEST(Bound, DeepSeekV3OnH100Is0Point84SecondsAtLineRate) {
    // A node of 8 holds 8 of 32 tensor-parallel ranks: a quarter of the 1,339,990,999,040 sharded bytes and all of
    // the 2,061,869,056 replicated ones, over 8 NICs of 50 GB/s.
    const auto bound = line_rate_bound(shipped_scenario("deepseek-v3-h100"));
    constexpr std::uint64_t kEntering = 1'339'990'999'040 / 4 + 2'061'869'056;
    EXPECT_EQ(bound.kind, BoundKind::kDomainIngress);
    EXPECT_NEAR(bound.time.value(), static_cast<double>(kEntering) / 400e9, 1e-12);
    EXPECT_NEAR(bound.time.value(), 0.843, 0.0005);
    EXPECT_EQ(bound.network_bytes.count(), 32 * kEntering);
}

TEST(Bound, DeepSeekV3OnGb200EntersEachRackOnce) {
    // A rack holds two whole engines: every byte enters it once, over 64 NICs.
    const auto bound = line_rate_bound(shipped_scenario("deepseek-v3-gb200"));
    EXPECT_NEAR(bound.time.value(), 1'342'052'868'096.0 / (64 * 50e9), 1e-12);
    EXPECT_EQ(bound.network_bytes.count(), 4 * std::uint64_t{1'342'052'868'096});
}

TEST(Bound, EfficiencyScalesIt) {
    const auto scenario = shipped_scenario("deepseek-v3-h100");
    EXPECT_NEAR(bound_at(scenario, 0.5).time.value(), 2.0 * line_rate_bound(scenario).time.value(), 1e-12);
}

TEST(Bound, FewTrainersAreBoundByTheirEgress) {
    // One trainer holds all 8 GiB; sixteen receivers in two domains. It must send each byte once: 8 GiB / 50 GB/s.
    // Entering a domain takes 8 GiB / 400 GB/s, all copies 16 GiB / (17 x 50 GB/s).
    const auto scenario = shipped_scenario("reshard-two-domains", {{"train.layout", "tp1@1"}, {"train.gpus", "1"}});
    const auto bound = line_rate_bound(scenario);
    EXPECT_EQ(bound.kind, BoundKind::kSourceEgress);
    EXPECT_NEAR(bound.time.value(), 8589934592.0 / 50e9, 1e-12);
}

TEST(Bound, ReceiversBesideTheTrainersNeedNoNetwork) {
    // Four trainers and four generators share one node: nothing must enter it, and each receiver takes 8 GiB over
    // NVLink alone, since NICs do not serve inside a node: 8 GiB / 450 GB/s.
    const auto scenario = shipped_scenario("reshard-one-domain", {{"placement.generation_starts_new_domain", "false"}});
    const auto bound = line_rate_bound(scenario);
    EXPECT_EQ(bound.network_bytes.count(), 0U);
    EXPECT_EQ(bound.kind, BoundKind::kLocalIngress);
    EXPECT_NEAR(bound.time.value(), 8589934592.0 / 450e9, 1e-12);
}

}  // namespace
}  // namespace refit
