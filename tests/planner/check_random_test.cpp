// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "element_run.hpp"
#include "fault_lines.hpp"
#include "random_refit.hpp"
#include "refit/check.hpp"
#include "refit/methods.hpp"
#include "refit/optimal.hpp"
#include "refit/slices.hpp"
#include "study.hpp"

namespace refit {
namespace {

using testing_support::Dice;
using testing_support::random_refit;

constexpr Method kMethods[] = {Method::kGatherBroadcast, Method::kDirect, Method::kStriped, Method::kOptimal};

constexpr int kRefitBatches = 20;
constexpr std::size_t kPairs = 20'000;

class RandomBatch : public testing::TestWithParam<int> {};

/// Every twentieth refit is also run on arrays of elements, which neither planner nor checker know of. Every
/// fourth has tensors of megabytes, which optimal cuts into messages.
TEST_P(RandomBatch, PassesTheCheckerForEveryMethod) {
    const auto system = shipped_library().system("h100-nvl8", "system").value();
    std::size_t pairs = 0;
    for (std::uint64_t seed = 0; pairs < kPairs / kRefitBatches; ++seed) {
        Dice dice{seed * kRefitBatches + static_cast<std::uint64_t>(GetParam())};
        const bool runs_elements = seed % 20 == 1;
        const auto refit = random_refit(dice, system, runs_elements ? 300 : 2000, seed % 4 == 0 ? 20'000 : 1);
        pairs += refit.pairs();
        for (const auto method : kMethods) {
            const auto plan = make_plan(method, refit.cluster, refit.rates, refit.workload).value();
            ASSERT_EQ(testing_support::fault_lines(check_plan(plan, refit.workload, refit.cluster)), "")
                << "seed " << seed;
            if (runs_elements) {
                ASSERT_EQ(testing_support::run_elements(plan, refit.workload, refit.cluster), "")
                    << name_of(method) << ", seed " << seed;
            }
        }
    }
    EXPECT_GE(pairs, kPairs / kRefitBatches);
}

/// How many plans went each of the ways that a plan can go.
struct Ways {
    int relayed = 0;
    int cut = 0;
    int gathered_stripes = 0;
    int broadcast_replicas = 0;
    int gathers = 0;
    int fused_shards = 0;
    int idle_trainers = 0;
};

void count_ways(const testing_support::RandomRefit& refit, Ways& ways) {
    const auto plan_of = [&](Method method) {
        return make_plan(method, refit.cluster, refit.rates, refit.workload).value();
    };
    const auto has_role = [](const Plan& plan, CollectiveRole role) {
        return std::ranges::any_of(plan.stages, [&](const PlanStage& stage) {
            return std::ranges::any_of(stage.collectives,
                                       [&](const Collective& entry) { return entry.role == role; });
        });
    };
    const auto relays = plan_of(Method::kOptimal).stages.front().relays;
    ways.relayed += relays.depth() > 1 ? 1 : 0;
    ways.cut +=
        relays.messages.size() > SliceTable::make(refit.workload, refit.cluster.train_gpus()).slices().size()
            ? 1
            : 0;
    const auto striped = plan_of(Method::kStriped);
    ways.gathered_stripes += has_role(striped, CollectiveRole::kReplicaAllGather) ? 1 : 0;
    ways.broadcast_replicas += has_role(striped, CollectiveRole::kReplicaBroadcast) ? 1 : 0;
    ways.gathers += has_role(plan_of(Method::kGatherBroadcast), CollectiveRole::kTensorAllGather) ? 1 : 0;
    const auto& source = refit.workload.classes().front().source;
    std::size_t holders = 0;
    for (const auto& shard : source.shards()) {
        holders += shard.members.size();
    }
    ways.fused_shards += source.shards().front().boxes.size() > 1 ? 1 : 0;
    ways.idle_trainers += holders < refit.workload.trainers_per_stage() ? 1 : 0;
}

TEST(RandomPairs, GoEveryWayThatAPlanCanGo) {
    const auto system = shipped_library().system("h100-nvl8", "system").value();
    Ways ways;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        Dice dice{seed};
        count_ways(random_refit(dice, system, 2000, seed % 4 == 0 ? 20'000 : 1), ways);
    }
    EXPECT_GT(ways.relayed, 40);
    EXPECT_GT(ways.cut, 40);
    EXPECT_GT(ways.gathered_stripes, 40);
    EXPECT_GT(ways.broadcast_replicas, 40);
    EXPECT_GT(ways.gathers, 40);
    EXPECT_GT(ways.fused_shards, 40);
    EXPECT_GT(ways.idle_trainers, 40);
}

Plan plan_of(RelayTable relays) {
    Plan plan;
    plan.method = Method::kOptimal;
    auto& stage = plan.stages.emplace_back();
    stage.kind = StageKind::kRelay;
    stage.relays = std::move(relays);
    return plan;
}

TEST(OptimalRelays, DeliverWhateverPortsAreDown) {
    const auto system = shipped_library().system("h100-nvl8", "system").value();
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
        Dice dice{seed};
        const auto refit = random_refit(dice, system, 2000, seed % 2 == 0 ? 20'000 : 1);
        const Fabric healthy{refit.cluster, refit.rates};
        std::vector<std::pair<std::uint32_t, GpuPorts>> changes;
        for (std::uint32_t rank = 0; rank < healthy.ranks(); ++rank) {
            auto ports = healthy.ports(rank);
            for (auto* port : {&ports.nic_out, &ports.nic_in, &ports.nvlink_out, &ports.nvlink_in}) {
                *port *= dice.once_in(8) ? 0.0 : static_cast<double>(dice.between(1, 4)) / 4.0;
            }
            changes.emplace_back(rank, ports);
        }
        const auto slices = SliceTable::make(refit.workload, refit.cluster.train_gpus());
        const auto plan = plan_of(optimal_relays(slices, study::with_ports(healthy, changes)));
        ASSERT_EQ(testing_support::fault_lines(check_plan(plan, refit.workload, refit.cluster)), "")
            << "seed " << seed;
    }
}

TEST(OptimalRelays, DeliverTheCasesOfTheStudy) {
    const auto system = shipped_library().system("h100-nvl8", "system").value();
    for (const auto& entry : study::cases()) {
        const auto workload = study::workload_of(entry.layout);
        const Cluster cluster{
            system, system, entry.layout.trainers(), entry.layout.generators(), {8, 8, true}};
        const auto slices = SliceTable::make(workload, cluster.train_gpus());
        const auto plan = plan_of(optimal_relays(slices, entry.fabric));
        EXPECT_EQ(testing_support::fault_lines(check_plan(plan, workload, cluster)), "") << entry.name;
    }
}

INSTANTIATE_TEST_SUITE_P(Pairs, RandomBatch, testing::Range(0, kRefitBatches));

}  // namespace
}  // namespace refit
