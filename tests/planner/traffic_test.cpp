// SPDX-License-Identifier: Apache-2.0
#include "refit/traffic.hpp"

#include <numeric>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/methods.hpp"

namespace refit {
namespace {

constexpr std::uint64_t kExpertBytes = 1'307'817'541'632;  // 58 layers x 256 experts x 3 x 2048 x 7168 x 2 B
constexpr std::uint64_t kWeightBytes = 1'342'052'868'096;  // 671,026,419,200 x 2 B + 58 x 256 FP32 biases x 2 B more
constexpr std::uint64_t kDenseBytes = kWeightBytes - kExpertBytes;
constexpr std::uint64_t kBulkBytes = 1'310'195'712'000;    // 655,097,856,000 FFN parameters x 2 B
constexpr std::uint64_t kMiscBytes = kWeightBytes - kBulkBytes;

struct Planned {
    Scenario scenario;
    Workload workload;
    Plan plan;
};

Planned planned(Method method, const std::string& name,
                std::initializer_list<std::pair<std::string, std::string>> changes = {}) {
    auto scenario = shipped_scenario(name, changes);
    auto workload = Workload::make(scenario);
    auto plan = make_plan(method, scenario, workload).value();
    return {std::move(scenario), std::move(workload), std::move(plan)};
}

/// Bytes over NICs of all collectives of one role.
std::uint64_t network_bytes_of(const Planned& planned, CollectiveRole role) {
    Traffic traffic{planned.scenario.cluster.gpus()};
    for (const auto& stage : planned.plan.stages) {
        for (const auto& collective : stage.collectives) {
            const auto& groups = planned.plan.groups[collective.groups];
            for (std::size_t i = 0; collective.role == role && i < groups.size(); ++i) {
                traffic.add_ring(planned.scenario.cluster, groups[i], role, collective.bytes[i]);
            }
        }
    }
    return traffic.network_bytes();
}

TEST(DeepSeekV3OnH100, PipelineBroadcastsCross27Point8TB) {
    // TP1 EP16: a stage is 16 ranks on 2 nodes, so the 16 ranks with the same place in the 16 stages are on 16 nodes:
    // 15 NIC hops for each of 16 places. Each place carries its experts' sixteenth and all dense weights (TP1).
    const auto p = planned(Method::kGatherBroadcast, "deepseek-v3-h100");
    EXPECT_EQ(network_bytes_of(p, CollectiveRole::kPipelineBroadcast), 16 * 15 * (kExpertBytes / 16 + kDenseBytes));
    EXPECT_EQ(network_bytes_of(p, CollectiveRole::kPipelineBroadcast), 27'833'741'475'840U);
}

TEST(DeepSeekV3OnH100, ExpertAllGathersCross39Point2TB) {
    // 16 groups (one a stage) of 16 ranks on 2 nodes; the ring crosses twice; each hop carries 15/16 of all experts,
    // since after the pipeline broadcast every stage gathers every expert of the model.
    const auto p = planned(Method::kGatherBroadcast, "deepseek-v3-h100");
    EXPECT_EQ(network_bytes_of(p, CollectiveRole::kExpertAllGather), 16 * 2 * (kExpertBytes / 16 * 15));
    EXPECT_EQ(network_bytes_of(p, CollectiveRole::kExpertAllGather), 39'234'526'248'960U);
}

TEST(DeepSeekV3OnH100, TheWeightBroadcastCrosses84Point5TB) {
    // 512 ranks on 64 nodes: a ring from trainer 0 enters 63 other nodes once with everything.
    const auto p = planned(Method::kGatherBroadcast, "deepseek-v3-h100");
    EXPECT_EQ(network_bytes_of(p, CollectiveRole::kWeightBroadcast), 63 * kWeightBytes);
    EXPECT_EQ(traffic(p.plan, p.scenario.cluster).network_bytes(), 27'833'741'475'840U + 39'234'526'248'960U + 63 * kWeightBytes);
}

TEST(DeepSeekV3OnH100, NvlinkCarriesTheOtherHopsOfEveryRing) {
    // Expert rings: 14 of 16 hops stay inside a node. Weight broadcast: 511 hops less the 63 across.
    const auto p = planned(Method::kGatherBroadcast, "deepseek-v3-h100");
    EXPECT_EQ(traffic(p.plan, p.scenario.cluster).nvlink_bytes(),
              16 * 14 * (kExpertBytes / 16 * 15) + (511 - 63) * kWeightBytes);
}

TEST(DeepSeekV3OnH100, HybridCrosses20Point1TB) {
    // Bulk: TP32 on 4 nodes, the 8 replicas of a shard on 8 different nodes. Each of the 256 receivers gets its
    // 1/32 over NICs, one eighth from trainers and seven from the ring: 8 times the bulk bytes.
    // The rest: pipeline broadcast of all of it (dense, TP1) over 15 hops for 16 places, and 63 hops of broadcast.
    const auto p = planned(Method::kHybrid, "deepseek-v3-h100");
    EXPECT_EQ(network_bytes_of(p, CollectiveRole::kReplicaAllGather), 7 * kBulkBytes);
    EXPECT_EQ(traffic(p.plan, p.scenario.cluster).network_bytes(), 8 * kBulkBytes + (240 + 63) * kMiscBytes);
    EXPECT_EQ(traffic(p.plan, p.scenario.cluster).network_bytes(), 20'134'283'993'088U);
}

TEST(DeepSeekV3OnH100, HybridsTrainersSendEachBulkByteOnce) {
    const auto p = planned(Method::kHybrid, "deepseek-v3-h100");
    std::uint64_t sent = 0;
    for (const auto& stage : p.plan.stages) {
        sent += transfer_traffic(p.plan, stage, p.scenario.cluster).network_bytes();
    }
    EXPECT_EQ(sent, kBulkBytes);
}

TEST(DeepSeekV3OnH100, ATrainerNicSends430GBOnAverage) {
    // (27.83 x 1 + 39.23 x 1) TB over 256 trainers, and 1/8 of the broadcast out of each trainer node's 8 NICs.
    const auto p = planned(Method::kGatherBroadcast, "deepseek-v3-h100");
    const auto all = traffic(p.plan, p.scenario.cluster);
    const auto& ports = all.ports();
    const auto sent = std::accumulate(ports.begin(), ports.begin() + 256, std::uint64_t{0},
                                      [](std::uint64_t sum, const PortBytes& port) { return sum + port.nic_out; });
    EXPECT_EQ(sent, 27'833'741'475'840U + 39'234'526'248'960U + 32 * kWeightBytes);
}

TEST(DeepSeekV3OnH100, LogicalBytesAreTwiceTheWeightsOrWhatReceiversWant) {
    const auto slow = planned(Method::kGatherBroadcast, "deepseek-v3-h100");
    EXPECT_EQ(logical_bytes(slow.plan, slow.workload).count(), 2 * kWeightBytes);
    // Each of 8 engines gets every sharded byte once and every replicated byte on each of its 32 ranks.
    // Replicated: 61 x (7168 x (1536 + 576 + 2) + 2048) + 58 x 256 x 7168 + 7168 BF16 elements, 58 x 256 FP32.
    constexpr std::uint64_t kReplicated = 2 * (61 * (7168 * 2114 + 2048) + 58 * 256 * 7168 + 7168) + 4 * 58 * 256;
    static_assert(kReplicated == 2'061'869'056);
    const auto fast = planned(Method::kDirect, "deepseek-v3-h100");
    const auto wanted = 8 * (kWeightBytes - kReplicated) + 256 * kReplicated;
    EXPECT_EQ(logical_bytes(fast.plan, fast.workload).count(), wanted);
    EXPECT_EQ(traffic(fast.plan, fast.scenario.cluster).network_bytes(), wanted);
}

TEST(DeepSeekV3OnGb200, OnlyRacksAreCrossed) {
    // 64 GPUs of a rack: 4 stages a rack, so pipeline rings cross 3 times between 4 racks, EP rings never,
    // and the broadcast over 8 racks 7 times.
    const auto p = planned(Method::kGatherBroadcast, "deepseek-v3-gb200");
    EXPECT_EQ(network_bytes_of(p, CollectiveRole::kPipelineBroadcast), 16 * 3 * (kExpertBytes / 16 + kDenseBytes));
    EXPECT_EQ(network_bytes_of(p, CollectiveRole::kExpertAllGather), 0U);
    EXPECT_EQ(network_bytes_of(p, CollectiveRole::kWeightBroadcast), 7 * kWeightBytes);
}

TEST(KimiK3OnH100, LogicalGatherAndBroadcastIsTwice5Point56TB) {
    const auto p = planned(Method::kGatherBroadcast, "kimi-k3-h100");
    const auto weights = p.workload.payload_bytes();
    EXPECT_NEAR(weights.as_double(), 5.56e12, 0.005e12);
    EXPECT_EQ(logical_bytes(p.plan, p.workload), weights * 2);
}

// The teaching matrix has 65,536 x 65,536 BF16 elements: 8 GiB, 2 GiB on each of four trainers (TP4, one node).
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

TEST(ReshardOneDomain, DirectSendsFourCopiesAndStripesOne) {
    // Four receivers in one NVLink domain want all 8 GiB each. Direct: 32 GiB over NICs. Striped: 8 GiB over NICs
    // (2 GiB a receiver), then a ring of four passes 3/4 of 8 GiB over each of its four NVLink hops: 24 GiB.
    const auto direct = planned(Method::kDirect, "reshard-one-domain");
    EXPECT_EQ(traffic(direct.plan, direct.scenario.cluster).network_bytes(), 32 * kGiB);
    EXPECT_EQ(traffic(direct.plan, direct.scenario.cluster).nvlink_bytes(), 0U);
    const auto striped = planned(Method::kHybrid, "reshard-one-domain");
    const auto sum = traffic(striped.plan, striped.scenario.cluster);
    EXPECT_EQ(sum.network_bytes(), 8 * kGiB);
    EXPECT_EQ(sum.nvlink_bytes(), 24 * kGiB);
    for (std::uint32_t rank = 4; rank < 8; ++rank) {
        EXPECT_EQ(sum.ports()[rank], (PortBytes{0, 2 * kGiB, 6 * kGiB, 6 * kGiB})) << rank;
    }
}

TEST(ReshardTwoDomains, TheRingEntersEachDomainOnce) {
    // Sixteen receivers in two domains of eight: stripes of 512 MiB, 8 GiB over NICs; the ring of sixteen crosses
    // twice with 15/16 of 8 GiB = 7.5 GiB and stays inside on 14 hops: 15 GiB over NICs, 105 GiB over NVLink.
    const auto striped = planned(Method::kHybrid, "reshard-two-domains");
    const auto sum = traffic(striped.plan, striped.scenario.cluster);
    EXPECT_EQ(sum.network_bytes(), (8 + 15) * kGiB);
    EXPECT_EQ(sum.nvlink_bytes(), 105 * kGiB);
}

TEST(Traffic, WhatIsSentIsReceivedOnEitherKindOfLink) {
    for (const auto& name : shipped_library().scenarios()) {
        const auto scenario = shipped_scenario(name);
        const auto workload = Workload::make(scenario);
        for (const auto method : {Method::kGatherBroadcast, Method::kHybrid, Method::kDirect, Method::kStriped}) {
            const auto plan = make_plan(method, scenario, workload).value();
            const auto all = traffic(plan, scenario.cluster);
            PortBytes sum;
            for (const auto& port : all.ports()) {
                sum.nic_out += port.nic_out;
                sum.nic_in += port.nic_in;
                sum.nvlink_out += port.nvlink_out;
                sum.nvlink_in += port.nvlink_in;
            }
            EXPECT_EQ(sum.nic_out, sum.nic_in) << name;
            EXPECT_EQ(sum.nvlink_out, sum.nvlink_in) << name;
        }
    }
}

TEST(Traffic, ABroadcastRingUsesEveryNicOfANodeAlike) {
    // 16 ranks on two nodes of 8, 800 bytes: 8 channels of 100 bytes, each over a NIC of its own.
    const auto scenario = shipped_scenario("reshard-two-domains");
    std::vector<RankId> group;
    for (std::uint32_t i = 0; i < 16; ++i) {
        group.push_back(scenario.cluster.generator(i));
    }
    Traffic traffic{scenario.cluster.gpus()};
    traffic.add_ring(scenario.cluster, group, CollectiveRole::kWeightBroadcast, 800);
    for (std::uint32_t i = 0; i < 8; ++i) {
        EXPECT_EQ(traffic.ports()[group[i].index()].nic_out, 100U) << i;
        EXPECT_EQ(traffic.ports()[group[i + 8].index()].nic_in, 100U) << i;
    }
    EXPECT_EQ(traffic.network_bytes(), 800U);
    EXPECT_EQ(traffic.nvlink_bytes(), 14 * 800U);
}

TEST(Traffic, AnAllGatherOfAnOddSizeLosesNoByte) {
    // Three members, 10 bytes gathered: contributions 4, 3, 3; every byte makes two hops.
    const auto scenario = shipped_scenario("reshard-one-domain");
    const std::vector group{RankId{4}, RankId{5}, RankId{6}};
    Traffic traffic{scenario.cluster.gpus()};
    traffic.add_ring(scenario.cluster, group, CollectiveRole::kReplicaAllGather, 10);
    EXPECT_EQ(traffic.nvlink_bytes(), 20U);
    EXPECT_EQ(traffic.ports()[4].nvlink_in, 6U);
    EXPECT_EQ(traffic.ports()[5].nvlink_in, 7U);
}

}  // namespace
}  // namespace refit
