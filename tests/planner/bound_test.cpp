// SPDX-License-Identifier: Apache-2.0
#include "refit/bound.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "study.hpp"

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

class StudyBounds : public testing::TestWithParam<study::Case> {};

TEST_P(StudyBounds, EqualThePublishedTableToItsDigits) {
    const auto& row = GetParam();
    const auto slices = SliceTable::make(study::workload_of(row.layout), row.layout.trainers());
    const auto bounds = cut_bounds(slices, row.fabric);
    const auto milliseconds = [&](BoundKind kind) { return bounds.of(kind).time.value() * 1e3; };
    EXPECT_NEAR(bounds.largest().time.value() * 1e3, row.bound, 0.0005);
    EXPECT_NEAR(milliseconds(BoundKind::kDomainIngress), row.b1, 0.0005);
    EXPECT_NEAR(milliseconds(BoundKind::kGpuIngress), row.b2, 0.0005);
    EXPECT_NEAR(milliseconds(BoundKind::kSourceEgress), row.b3, 0.0005);
    EXPECT_NEAR(bounds.own_nic_egress.time.value() * 1e3, row.own_b3, 0.0005);
    EXPECT_NEAR(milliseconds(BoundKind::kCopyVolume), row.b4, 0.0005);
    EXPECT_EQ(lower_bound(slices, row.fabric).time, bounds.largest().time);
}

INSTANTIATE_TEST_SUITE_P(Rows, StudyBounds, testing::ValuesIn(study::cases()),
                         [](const auto& row) { return row.param.name; });

CutBounds study_bounds(const std::string& name) {
    const auto rows = study::cases();
    const auto& row = *std::ranges::find(rows, name, &study::Case::name);
    return cut_bounds(SliceTable::make(study::workload_of(row.layout), row.layout.trainers()), row.fabric);
}

TEST(StudyBounds, EqualFractionsByHand) {
    // A tensor of 256 x 2048 x 7168 BF16 elements. One stage: 16 trainers hold it, one NIC each; in racks the other 48
    // GPUs of the rack lend theirs. Nodes of the engine want a quarter of it, racks all of it.
    constexpr double kBytes = 256.0 * 2048 * 7168 * 2;
    const auto nodes = study_bounds("DeepSeekOneStageNodes");
    EXPECT_NEAR(nodes.of(BoundKind::kDomainIngress).time.value(), kBytes / 4 / 400e9, 1e-12);
    EXPECT_NEAR(nodes.of(BoundKind::kGpuIngress).time.value(), kBytes / 32 / 500e9, 1e-12);
    EXPECT_NEAR(nodes.of(BoundKind::kSourceEgress).time.value(), kBytes / (16 * 50e9), 1e-12);
    EXPECT_NEAR(nodes.of(BoundKind::kCopyVolume).time.value(), 8 * kBytes / (272 * 50e9), 1e-12);
    EXPECT_EQ(nodes.network_bytes.count(), std::uint64_t{8} * 256 * 2048 * 7168 * 2);
    const auto racks = study_bounds("DeepSeekOneStageRacks");
    EXPECT_NEAR(racks.of(BoundKind::kSourceEgress).time.value(), kBytes / (64 * 50e9), 1e-12);
    EXPECT_NEAR(racks.own_nic_egress.time.value(), kBytes / (16 * 50e9), 1e-12);
    EXPECT_NEAR(racks.of(BoundKind::kCopyVolume).time.value(), 4 * kBytes / (320 * 50e9), 1e-12);
}

TEST(StudyBounds, NameTheDomainOrPortThatBinds) {
    EXPECT_EQ(study_bounds("UltraContiguousRacks").largest().where, "domain 1");
    EXPECT_EQ(study_bounds("DeepSeekOneStageNodes").largest().where, "domain 0");
}

TEST(Bound, OfManyReceiversOfOneDomainCountsDuplicateEntry) {
    // One trainer node and 64 receivers in a rack that each want all of 64 GiB: what enters once is spread over NVLink,
    // but the NICs may bring more than once: 64 x 64 GiB / (64 x 950 GB/s).
    const study::Layout layout{{32768, 1048576}, 8, 1, 1, 1, 1, 64};
    const auto fabric = study::apart(layout, 64, study::kGb200);
    const auto bounds = cut_bounds(SliceTable::make(study::workload_of(layout), 8), fabric);
    EXPECT_NEAR(bounds.of(BoundKind::kPortIngress).time.value(), 68719476736.0 / 950e9, 1e-12);
}

TEST(Bound, IsInfiniteWhereNothingCanEnter) {
    const study::Layout layout{{64, 64}, 1, 1, 1, 1, 1, 1};
    const auto fabric = study::with_ports(study::apart(layout, 8, study::kH100), {{1, {50e9, 0.0, 450e9, 450e9}}});
    EXPECT_TRUE(std::isinf(lower_bound(SliceTable::make(study::workload_of(layout), 1), fabric).time.value()));
}

}  // namespace
}  // namespace refit
