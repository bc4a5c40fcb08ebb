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
