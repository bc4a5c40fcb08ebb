// SPDX-License-Identifier: Apache-2.0
#include "refit/rank_classes.hpp"

#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/methods.hpp"
#include "refit/traffic.hpp"

namespace refit {
namespace {

struct Classified {
    Scenario scenario;
    Workload workload;
    Plan plan;
    RankClasses classes;
};

std::vector<std::uint32_t> all_stages(const Plan& plan) {
    std::vector<std::uint32_t> stages(plan.stages.size());
    std::iota(stages.begin(), stages.end(), 0U);
    return stages;
}

Classified classified(Method method,
                      const std::string& name,
                      std::initializer_list<std::pair<std::string, std::string>> changes = {}) {
    auto scenario = shipped_scenario(name, changes);
    auto workload = Workload::make(scenario);
    auto plan = make_plan(method, scenario, workload).value();
    auto classes = RankClasses::make(plan,
                                     all_stages(plan),
                                     scenario.cluster,
                                     Fabric{scenario.cluster, port_rates(scenario.cluster, 1.0, 1.0)},
                                     workload.trainers_per_stage());
    return {std::move(scenario), std::move(workload), std::move(plan), std::move(classes)};
}

/// A message of one use: bytes, class of the other end, whether this end sends, whether it crosses domains.
using Message = std::tuple<std::uint64_t, std::uint32_t, bool, bool>;

/// By the definition: what each rank sends to and receives from each class, use by use.
std::vector<std::map<Message, std::uint64_t>> messages_by_rank(const Classified& job,
                                                               const TransferUse& use) {
    const auto& block = job.plan.blocks[use.block];
    const auto& cluster = job.scenario.cluster;
    std::vector<std::map<Message, std::uint64_t>> messages(cluster.gpus());
    for (std::size_t i = 0; i < block.size(); ++i) {
        const RankId from{use.first_source.index() + block.source[i]};
        const auto to = cluster.generator(block.destination[i]);
        const bool crosses = cluster.domain_of(from) != cluster.domain_of(to);
        const auto bytes = block.boxes[block.box[i]].volume();
        ++messages[from.index()][{bytes, job.classes.class_of(to), true, crosses}];
        ++messages[to.index()][{bytes, job.classes.class_of(from), false, crosses}];
    }
    return messages;
}

void expect_alike(const Classified& job) {
    std::uint32_t ranks = 0;
    for (std::uint32_t index = 0; index < job.classes.count(); ++index) {
        ranks += static_cast<std::uint32_t>(job.classes.members(index).size());
        for (const auto rank : job.classes.members(index)) {
            EXPECT_EQ(job.classes.class_of(rank), index);
        }
    }
    EXPECT_EQ(ranks, job.scenario.cluster.gpus()) << "each rank is in one class";
    for (const auto& stage : job.plan.stages) {
        for (const auto& use : stage.transfers) {
            const auto messages = messages_by_rank(job, use);
            for (std::uint32_t index = 0; index < job.classes.count(); ++index) {
                const auto& members = job.classes.members(index);
                for (const auto rank : members) {
                    ASSERT_EQ(messages[rank.index()], messages[members.front().index()])
                        << "ranks " << rank.index() << " and " << members.front().index()
                        << " are told to be alike";
                }
            }
        }
    }
}

TEST(RankClasses, RanksOfAClassSendAndReceiveAlike) {
    for (const auto& [method, name] :
         std::vector<std::pair<Method, std::string>>{{Method::kHybrid, "deepseek-v3-h100"},
                                                     {Method::kStriped, "qwen3-235b-h100"},
                                                     {Method::kDirect, "nemotron-ultra-gb200"},
                                                     {Method::kHybrid, "reshard-two-domains"}}) {
        SCOPED_TRACE(name);
        expect_alike(classified(method, name));
    }
}

TEST(RankClasses, RanksOfAClassCarryTheSameBytesOnEachPort) {
    for (const auto& name : {"deepseek-v3-h100", "deepseek-v3-gb200", "qwen3-235b-h100"}) {
        SCOPED_TRACE(name);
        const auto job = classified(Method::kGatherBroadcast, name);
        const auto sum = traffic(job.plan, job.scenario.cluster);
        for (std::uint32_t index = 0; index < job.classes.count(); ++index) {
            const auto& members = job.classes.members(index);
            const auto& first = sum.ports()[members.front().index()];
            for (const auto rank : members) {
                const auto& ports = sum.ports()[rank.index()];
                // Whole bytes of uneven divisions may differ, a byte for each hop of each call.
                EXPECT_NEAR(static_cast<double>(ports.nic_out), static_cast<double>(first.nic_out), 64.0);
                EXPECT_NEAR(static_cast<double>(ports.nic_in), static_cast<double>(first.nic_in), 64.0);
                EXPECT_NEAR(
                    static_cast<double>(ports.nvlink_out), static_cast<double>(first.nvlink_out), 64.0);
                EXPECT_NEAR(static_cast<double>(ports.nvlink_in), static_cast<double>(first.nvlink_in), 64.0);
            }
        }
    }
}

// Four trainers hold a quarter each; sixteen generators in two domains each want a stripe of a 64th of every
// quarter. Trainers are alike, and so are generators, but for the ends of the domains where the replicas'
// ring crosses: with one channel, ranks 0 and 8 of the generators receive from the other domain and 7 and 15
// send to it.
TEST(RankClasses, TellsApartWhereARingCrossesDomains) {
    const auto job = classified(Method::kHybrid, "reshard-two-domains");
    std::set<std::uint32_t> generators;
    for (std::uint32_t i = 0; i < 16; ++i) {
        generators.insert(job.classes.class_of(job.scenario.cluster.generator(i)));
    }
    const auto class_of = [&](std::uint32_t i) {
        return job.classes.class_of(job.scenario.cluster.generator(i));
    };
    EXPECT_EQ(class_of(0), class_of(8));
    EXPECT_NE(class_of(0), class_of(1));
}

TEST(RankClasses, EveryRankOfRelaysIsAClass) {
    const auto job = classified(Method::kOptimal, "reshard-two-domains");
    EXPECT_EQ(job.classes.count(), job.scenario.cluster.gpus());
}

TEST(RankClasses, RootsOfEachStageKeepTheirStagesApart) {
    const auto job = classified(
        Method::kGatherBroadcast, "deepseek-v3-h100", {{"engine.options.broadcast_root", "each-pp-stage"}});
    std::map<std::uint32_t, std::uint32_t> stage_of_class;
    for (std::uint32_t rank = 0; rank < job.scenario.cluster.train_gpus(); ++rank) {
        const auto stage = rank / job.workload.trainers_per_stage();
        const auto [known, is_new] = stage_of_class.try_emplace(job.classes.class_of(RankId{rank}), stage);
        EXPECT_EQ(known->second, stage);
    }
}

// Eight trainers in two domains of four; one message, root 0.
TEST(RingShares, ABroadcastOverTwoDomains) {
    const auto system = shipped_library().system("h100-nvl8", "system").value();
    const Cluster cluster{system, system, 4, 4, {4, 4, true}};
    Plan plan;
    plan.groups.push_back(
        {{RankId{0}, RankId{1}, RankId{2}, RankId{3}, RankId{4}, RankId{5}, RankId{6}, RankId{7}}});
    const auto shares = ring_shares(plan, {CollectiveRole::kWeightBroadcast, 0, {1000}, 1, {}}, cluster);
    EXPECT_EQ(shares.wire_bytes, (std::vector<double>{1000.0}));
    EXPECT_TRUE(shares.crosses_domains[0]);
    // Four members in each domain: four channels, each by a NIC of its own, a quarter of the bytes on each.
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
        EXPECT_NEAR(shares.of_rank[rank][static_cast<std::size_t>(Port::kNicOut)], 0.25, 1e-9);
        EXPECT_EQ(shares.of_rank[rank][static_cast<std::size_t>(Port::kNicIn)], 0.0);
        EXPECT_NEAR(shares.of_rank[rank + 4][static_cast<std::size_t>(Port::kNicIn)], 0.25, 1e-9);
    }
    // Three hops inside the root's domain on each channel: the root sends on all, and over all ranks 3
    // messages in.
    double received = 0.0;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
        received += shares.of_rank[rank][static_cast<std::size_t>(Port::kNvlinkIn)];
    }
    EXPECT_NEAR(received, 3.0, 1e-9);
    EXPECT_EQ(shares.of_rank[0][static_cast<std::size_t>(Port::kCopy)], 0.0);
}

// An all-gather over four ranks of one domain: each hop carries 3/4 of the result, which is what the shares
// refer to.
TEST(RingShares, AnAllGatherInsideADomain) {
    const auto system = shipped_library().system("h100-nvl8", "system").value();
    const Cluster cluster{system, system, 4, 4, {4, 4, true}};
    Plan plan;
    plan.groups.push_back({{RankId{0}, RankId{1}, RankId{2}, RankId{3}}});
    const auto shares = ring_shares(plan, {CollectiveRole::kTensorAllGather, 0, {4000}, 1, {}}, cluster);
    EXPECT_EQ(shares.wire_bytes, (std::vector<double>{3000.0}));
    EXPECT_FALSE(shares.crosses_domains[0]);
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
        EXPECT_NEAR(shares.of_rank[rank][static_cast<std::size_t>(Port::kNvlinkOut)], 1.0, 1e-9);
        EXPECT_NEAR(shares.of_rank[rank][static_cast<std::size_t>(Port::kNvlinkIn)], 1.0, 1e-9);
    }
    EXPECT_EQ(shares.of_rank[5][static_cast<std::size_t>(Port::kNvlinkIn)], 0.0);
}

}  // namespace
}  // namespace refit
