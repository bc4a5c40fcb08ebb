// SPDX-License-Identifier: Apache-2.0
// Cases from public bug reports on plans; the number in a test's name is the case's id in docs/public_reports.md.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/check.hpp"
#include "refit/explicit_job.hpp"
#include "refit/io/plan_file.hpp"
#include "refit/methods.hpp"
#include "refit/optimal.hpp"
#include "refit/overlap.hpp"

namespace refit {
namespace {

using Kind = DtensorPlacement::Kind;

System system() { return shipped_scenario("reshard-one-domain").cluster.train_system(); }

/// A matrix cut by rows over trainers and by columns over generators.
ExplicitJob rows_to_columns(std::vector<std::uint64_t> shape, std::uint32_t trainers, std::uint32_t generators) {
    M2nCall call;
    call.source = {shape, 1, {{trainers}, RankId{0}}, {{Kind::kShard, 0, 1}}};
    call.destination = {std::move(shape), 1, {{generators}, RankId{trainers}}, {{Kind::kShard, 1, 1}}};
    return explicit_job("matrix", call, 8, system()).value();
}

Plan plan_of(const ExplicitJob& job, Method method = Method::kOptimal) {
    return make_plan(method, job.cluster, port_rates(job.cluster, 1.0, 1.0), job.workload).value();
}

TEST(PublicReports, A35BytesBeyondFourGibibytesAreCountedAndCut) {
    // int8, 131,072 x 131,072: 16 GiB, 4 GiB a rank, 1 GiB a pair.
    const auto job = rows_to_columns({131072, 131072}, 4, 4);
    const auto plan = plan_of(job);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> pairs;
    const auto& relays = plan.stages.front().relays;
    for (std::size_t hop = 0; hop < relays.size(); ++hop) {
        const auto bytes = relays.messages[relays.message[hop]].bytes;
        EXPECT_LT(bytes, std::uint64_t{1} << 31U);
        pairs[{relays.source[hop], relays.destination[hop]}] += bytes;
    }
    EXPECT_EQ(pairs.size(), 16U);
    for (const auto& [ends, bytes] : pairs) {
        EXPECT_EQ(bytes, std::uint64_t{1} << 30U);
    }
    EXPECT_TRUE(check_plan(plan, job.workload, job.cluster).empty());
}

TEST(PublicReports, A35SizesAroundThirtyOneAndThirtyTwoBitsArePlanned) {
    for (const std::uint64_t elements : {(1ULL << 31U) - 1, 1ULL << 31U, (1ULL << 32U) - 1, 1ULL << 32U, (1ULL << 32U) + 1}) {
        const auto job = rows_to_columns({elements, 2}, 4, 2);
        for (const auto method : {Method::kDirect, Method::kStriped, Method::kOptimal}) {
            EXPECT_TRUE(check_plan(plan_of(job, method), job.workload, job.cluster).empty()) << elements;
        }
    }
}

/// One trainer with all of Qwen3-30B-A3B and eight engines of one GPU, each alone in its domain; their NICs send at this
/// part of the trainer's rate. Returns what the trainer sends, in units of the model.
double trainer_egress(double receiver_out) {
    constexpr std::uint64_t kWeights = 61'064'245'248;
    const auto slices = SliceTable::of({{0}, {1, 2, 3, 4, 5, 6, 7, 8}}, {{0, 1, kWeights}});
    std::vector<GpuPorts> ports(9, {50e9 * receiver_out, 50e9, 450e9, 450e9});
    ports[0].nic_out = 50e9;
    const Fabric fabric{{0, 1, 2, 3, 4, 5, 6, 7, 8}, std::move(ports)};
    const auto relays = optimal_relays(slices, fabric);
    double sent = 0.0;
    for (std::size_t hop = 0; hop < relays.size(); ++hop) {
        sent += relays.source[hop] == 0 ? static_cast<double>(relays.messages[relays.message[hop]].bytes) : 0.0;
    }
    return sent / static_cast<double>(kWeights);
}

TEST(PublicReports, A55RelaysWhereTheTrainersUplinkBinds) {
    EXPECT_NEAR(trainer_egress(1.0), 1.0, 0.02);
}

TEST(PublicReports, A55SendsDirectlyWhereReceiversUplinksAreSlow) {
    // Eight copies over rates of 1 and 8/32 take 8 / 1.25 of the model's time: the trainer sends all but what they can.
    EXPECT_NEAR(trainer_egress(1.0 / 32.0), 8.0 / 1.25, 0.15);
    EXPECT_NEAR(trainer_egress(0.0), 8.0, 1e-9);
}

/// Groups of 32 neighbours among 128 trainers that lie in more than one domain.
std::vector<std::uint32_t> crossing_groups(std::uint32_t used) {
    const Cluster cluster{system(), system(), 128, 16, Placement{used, used, true}};
    std::vector<std::uint32_t> crossing;
    for (std::uint32_t group = 0; group < 4; ++group) {
        if (cluster.domain_of(RankId{32 * group}) != cluster.domain_of(RankId{32 * group + 31})) {
            crossing.push_back(group);
        }
    }
    return crossing;
}

TEST(PublicReports, A58ExpertGroupsCrossDomainsUnlessPlacementIsAligned) {
    // 18 nodes of 4 a domain: in node order group 2, ranks 64 to 95, ends beyond the 72 of the first; with 64 used of each,
    // two nodes stay spare and no group crosses.
    EXPECT_EQ(crossing_groups(72), (std::vector<std::uint32_t>{2}));
    EXPECT_TRUE(crossing_groups(64).empty());
}

TEST(PublicReports, A59OnlyPairsWithinARackHaveItsBandwidth) {
    // Groups of 4, 72, 73 and 128 neighbours in racks of 72: the last rank of the group against the first.
    const Fabric fabric{Cluster{system(), system(), 144, 16, Placement{72, 72, true}},
                        SideRates{{Bandwidth::gigabytes_per_second(50), Bandwidth::gigabytes_per_second(900)},
                                  {Bandwidth::gigabytes_per_second(50), Bandwidth::gigabytes_per_second(900)}}};
    const auto rate = [&](std::uint32_t size) {
        const bool is_local = fabric.domain_of(0) == fabric.domain_of(size - 1);
        return (is_local ? fabric.ports(size - 1).nvlink_in : fabric.ports(size - 1).nic_in) / 1e9;
    };
    EXPECT_EQ((std::vector<double>{rate(4), rate(72), rate(73), rate(128)}), (std::vector<double>{900, 900, 50, 50}));
}

TEST(PublicReports, A63CrossesRailsByANeighbour) {
    // GPU 0 of node 0 to GPU 6 of node 1, 8 rails that do not meet: over NVLink to GPU 6 of node 0 or from GPU 0 of node 1.
    std::vector<std::uint32_t> domains(16, 0);
    std::fill(domains.begin() + 8, domains.end(), 1);
    const Fabric fabric{domains, std::vector<GpuPorts>(16, {50e9, 50e9, 450e9, 450e9}), Spine{{}, {}, {}, 8}};
    const auto relays = optimal_relays(SliceTable::of({{0}, {14}}, {{0, 1, 1U << 18U}}), fabric);
    ASSERT_EQ(relays.messages.size(), 1U);
    ASSERT_EQ(relays.size(), 2U);
    EXPECT_EQ(relays.source[0], 0U);
    EXPECT_EQ(relays.destination[1], 14U);
    EXPECT_TRUE(relays.destination[0] == 6 || relays.destination[0] == 8) << relays.destination[0];
    EXPECT_EQ(relays.follows[1], 0U);
}

TEST(PublicReports, A85RegionsGrowWithTheSquareOfStripes) {
    for (const std::uint32_t stripes : {32U, 64U, 128U}) {
        const auto job = rows_to_columns({1024, 1024}, stripes, stripes);
        const auto& entry = job.workload.classes().front();
        EXPECT_EQ(overlap(entry.source, entry.destinations.front()).size(), std::size_t{stripes} * stripes);
    }
}

std::string hash_of(const ExplicitJob& job) {
    const auto text = io::write_plan({"job", job.workload, plan_of(job), job.cluster.train_gpus(), io::domain_starts(job.cluster)},
                                     io::PlanEncoding::kJson);
    return text.substr(text.find("xxh3-128:"), 41);
}

TEST(PublicReports, A86PlansDifferWhereOnlyRanksDo) {
    // The same meshes, but the replicas of a shard lie two ranks apart or side by side.
    M2nCall call;
    call.source = {{8, 8}, 2, {{2, 2}, RankId{0}}, {{Kind::kReplicate, 0, 1}, {Kind::kShard, 0, 1}}};
    call.destination = {{8, 8}, 2, {{2}, RankId{4}}, {{Kind::kShard, 1, 1}}};
    const auto apart = explicit_job("matrix", call, 8, system()).value();
    call.source.placements = {{Kind::kShard, 0, 1}, {Kind::kReplicate, 0, 1}};
    const auto beside = explicit_job("matrix", call, 8, system()).value();
    EXPECT_NE(hash_of(apart), hash_of(beside));
    EXPECT_EQ(hash_of(apart), hash_of(apart));
}

}  // namespace
}  // namespace refit
