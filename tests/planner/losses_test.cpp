// SPDX-License-Identifier: Apache-2.0
#include "refit/losses.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "program_run.hpp"
#include "random_refit.hpp"
#include "refit/broadcast_roots.hpp"
#include "refit/certificate.hpp"
#include "refit/check.hpp"
#include "refit/holdings.hpp"
#include "refit/methods.hpp"
#include "refit/program_schedule.hpp"
#include "refit/traffic.hpp"

namespace refit {
namespace {

using testing_support::Dice;
using testing_support::random_refit;

Scenario dense(const std::string& train, const std::string& trainers, const std::string& lost) {
    return shipped_scenario("reshard-two-domains",
                            {{"model", "qwen3-0.6b/16"},
                             {"train.layout", train},
                             {"train.gpus", trainers},
                             {"generate.layout", "tp2"},
                             {"generate.gpus", "4"},
                             {"lost", lost}});
}

Scenario experts(const std::string& lost) {
    return shipped_scenario("reshard-two-domains",
                            {{"model", "qwen3-30b-a3b/16"},
                             {"train.layout", "tp2.ep4.pp2"},
                             {"train.gpus", "16"},
                             {"generate.layout", "tp2"},
                             {"generate.gpus", "8"},
                             {"lost", lost}});
}

/// By class: boxes, layers and bytes of what a rank holds, whatever the classes it is in.
std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> held(const Scenario& scenario,
                                                                    std::uint32_t rank) {
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> sums;
    for (const auto& holding : holdings_of(scenario, Workload::make(scenario), RankId{rank}).holdings) {
        auto& [layers, bytes] = sums[holding.name];
        layers += holding.layers;
        bytes += holding.bytes.count();
        for (const auto& box : holding.boxes) {
            EXPECT_GT(box.volume(), 0U);
        }
    }
    return sums;
}

TEST(Losses, LeaveEachSurvivorWhatItHeldAndWanted) {
    for (const auto* lost : {"3", "3,12,17", "1,2,8-11"}) {
        const auto before = experts("");
        const auto after = experts(lost);
        for (std::uint32_t rank = 0; rank < 24; ++rank) {
            const auto left = held(after, rank);
            if (after.cluster.losses().is_absent(rank)) {
                EXPECT_TRUE(left.empty());
            } else {
                EXPECT_EQ(left, held(before, rank)) << rank << " without " << lost;
            }
        }
        EXPECT_EQ(Workload::make(after).payload_bytes(), Workload::make(before).payload_bytes());
    }
}

/// Who is named by a plan, in any way.
std::set<std::uint32_t> named_by(const Plan& plan, std::uint32_t train_gpus) {
    std::set<std::uint32_t> ranks;
    for (const auto& groups : plan.groups) {
        for (const auto& group : groups) {
            std::ranges::for_each(group, [&](RankId rank) { ranks.insert(rank.index()); });
        }
    }
    for (const auto& stage : plan.stages) {
        for (const auto& use : stage.transfers) {
            const auto& block = plan.blocks[use.block];
            for (std::size_t i = 0; i < block.size(); ++i) {
                ranks.insert(use.first_source.index() + block.source[i]);
                ranks.insert(train_gpus + block.destination[i]);
            }
        }
        ranks.insert(stage.relays.source.begin(), stage.relays.source.end());
        ranks.insert(stage.relays.destination.begin(), stage.relays.destination.end());
    }
    return ranks;
}

TEST(Losses, AreNamedByNoMethodsPlanWhichStillDeliversAll) {
    int plans = 0;
    for (const auto* lost : {"3", "17", "3,17", "2,7", "1,3,8,13,20-21", "0-3,8-11", "5,16,18,20"}) {
        const auto scenario = experts(lost);
        const auto workload = Workload::make(scenario);
        for (const auto method : {Method::kGatherBroadcast,
                                  Method::kHybrid,
                                  Method::kDirect,
                                  Method::kStriped,
                                  Method::kM2n,
                                  Method::kOptimal}) {
            const auto plan = make_plan(method, scenario, workload);
            if (!plan) {
                EXPECT_TRUE(method == Method::kM2n) << name_of(method) << plan.error().front().message;
                continue;
            }
            ++plans;
            const auto faults = check_plan(*plan, workload, scenario.cluster);
            EXPECT_TRUE(faults.empty())
                << name_of(method) << " without " << lost << ": " << faults.front().message;
            for (const auto rank : named_by(*plan, 16)) {
                EXPECT_FALSE(scenario.cluster.losses().is_absent(rank))
                    << name_of(method) << " names rank " << rank;
            }
        }
    }
    EXPECT_GE(plans, 35);
}

/// The matrix is held by 4 trainers, one quarter each, twice: M2N's meshes have equally many copies of each,
/// so without rank 5 it sends from four of the seven that are left; without ranks 4 to 7 from all four.
TEST(Losses, LeaveM2nAMeshOfEqualCopies) {
    const auto plan_without = [](const std::string& lost) {
        const auto scenario = shipped_scenario(
            "reshard-two-domains", {{"model", "teaching-matrix/16"}, {"train.gpus", "8"}, {"lost", lost}});
        const auto workload = Workload::make(scenario);
        auto plan = make_plan(Method::kM2n, scenario, workload);
        EXPECT_TRUE(plan) << plan.error().front().message;
        const auto faults = check_plan(*plan, workload, scenario.cluster);
        EXPECT_TRUE(faults.empty()) << faults.front().message;
        std::set<std::uint32_t> senders;
        const auto& relays = plan->stages.front().relays;
        for (std::size_t hop = 0; hop < relays.size(); ++hop) {
            if (relays.source[hop] < 8) {
                senders.insert(relays.source[hop]);
            }
        }
        return senders;
    };
    EXPECT_EQ(plan_without("5"), (std::set<std::uint32_t>{0, 1, 2, 3}));
    EXPECT_EQ(plan_without("4-7"), (std::set<std::uint32_t>{0, 1, 2, 3}));
    EXPECT_EQ(plan_without("0"), (std::set<std::uint32_t>{1, 2, 3, 4}));
}

/// TP2 with two copies: ranks 1 and 3 hold second halves. Without rank 3 rank 1 sends both engines theirs.
TEST(Losses, LetAPeerSendWhatTheLostTrainerHeld) {
    const auto whole = dense("tp2", "4", "");
    const auto rest = dense("tp2", "4", "3");
    const auto sent = [](const Scenario& scenario) {
        const auto workload = Workload::make(scenario);
        const auto moved = traffic(make_plan(Method::kDirect, scenario, workload).value(), scenario.cluster);
        std::vector<std::uint64_t> bytes;
        for (const auto& port : moved.ports()) {
            bytes.push_back(port.nic_out + port.nvlink_out);
        }
        return bytes;
    };
    const auto before = sent(whole);
    const auto after = sent(rest);
    EXPECT_GT(before[3], 0U);
    EXPECT_EQ(after[3], 0U);
    EXPECT_EQ(after[0] + after[1] + after[2], before[0] + before[1] + before[2] + before[3]);
    EXPECT_GE(after[1], before[1] + before[3] * 9 / 10);  // All but norms, which all ranks hold.
}

/// TP2 and EP4 of ETP1 join the places 0 to 3 and 4 to 7 of both stages. Who lost a peer leaves the gather.
TEST(Losses, LeaveTheGatherToBlocksThatLostNobody) {
    const auto gatherers = gatherers_of(experts("11"));
    EXPECT_EQ(gatherers.places, (std::vector<std::vector<std::uint32_t>>{{4, 5, 6, 7}, {4, 5, 6, 7}}));
    EXPECT_FALSE(gatherers.is_plain);
    const auto scenario = experts("11");
    const auto plan = make_plan(Method::kGatherBroadcast, scenario, Workload::make(scenario)).value();
    std::set<std::uint32_t> gather;
    for (const auto& collective : plan.stages.front().collectives) {
        for (const auto& group : plan.groups[collective.groups]) {
            std::ranges::for_each(group, [&](RankId rank) { gather.insert(rank.index()); });
        }
    }
    EXPECT_EQ(gather, (std::set<std::uint32_t>{4, 5, 6, 7, 12, 13, 14, 15}));
    const auto& broadcast = plan.groups[plan.stages.back().collectives.front().groups].front();
    EXPECT_EQ(broadcast.front(), RankId{4});
    EXPECT_EQ(broadcast.size(), 23U);
    // Both blocks lost one in both stages: the first holders of each shard gather, which rank 1, not 0,
    // leads.
    EXPECT_TRUE(gatherers_of(experts("0,7,8,15")).is_plain);
    EXPECT_EQ(gatherers_of(experts("0,7,8,15")).first, RankId{1});
}

/// Both blocks of the first stage lost one, none of the second, which gathers: 8 to 15. Of places 0 and 7 of
/// the first stage it gets what rank 2 (TP) and rank 4 (EP), and 1 and 3, hold as well. 12 lost leaves it the
/// block of 8.
TEST(Losses, LeaveTheGatherToStagesThatAreWhole) {
    const auto gatherers = gatherers_of(experts("0,7"));
    EXPECT_EQ(gatherers.places, (std::vector<std::vector<std::uint32_t>>{{}, {0, 1, 2, 3, 4, 5, 6, 7}}));
    EXPECT_EQ(gatherers.roots.front().front(), RankId{8});
    EXPECT_FALSE(gatherers.is_plain);
    EXPECT_EQ(gatherers_of(experts("0,7,12")).places.back(), (std::vector<std::uint32_t>{0, 1, 2, 3}));
    for (const auto* lost : {"0,7", "0,7,12", "3,4,11"}) {
        const auto scenario = experts(lost);
        const auto workload = Workload::make(scenario);
        const auto plan = make_plan(Method::kGatherBroadcast, scenario, workload).value();
        const auto faults = check_plan(plan, workload, scenario.cluster);
        EXPECT_TRUE(faults.empty()) << lost << ": " << faults.front().message;
    }
    const auto scenario = experts("0,7");
    const auto plan = make_plan(Method::kGatherBroadcast, scenario, Workload::make(scenario)).value();
    std::map<std::uint32_t, std::set<std::uint32_t>> holders;  // By taker in the second stage.
    for (const auto& collective : plan.stages.front().collectives) {
        for (const auto& group : plan.groups[collective.groups]) {
            const bool is_broadcast = collective.role == CollectiveRole::kPipelineBroadcast;
            for (std::size_t i = 1; i < group.size() && is_broadcast && group.front().index() < 8; ++i) {
                holders[group[i].index()].insert(group.front().index());
            }
        }
    }
    EXPECT_EQ(holders.size(), 8U);
    EXPECT_EQ(holders[8], (std::set<std::uint32_t>{2, 4}));
    EXPECT_EQ(holders[15], (std::set<std::uint32_t>{1, 3}));
    EXPECT_EQ(holders[9], (std::set<std::uint32_t>{1}));
    const auto& broadcast = plan.groups[plan.stages.back().collectives.front().groups].front();
    EXPECT_EQ(broadcast.front(), RankId{8});
}

/// Stages that gather for themselves lose only their own blocks.
TEST(Losses, LeaveEachStageItsOwnRoots) {
    auto scenario = experts("11");
    scenario.engine.options.broadcast_root = BroadcastRoot::kEachStage;
    scenario.engine.options.broadcast_senders = 2;
    EXPECT_EQ(gatherers_of(scenario).places,
              (std::vector<std::vector<std::uint32_t>>{{0, 1, 2, 3, 4, 5, 6, 7}, {4, 5, 6, 7}}));
    EXPECT_EQ(most_senders(scenario), 4U);
    const auto workload = Workload::make(scenario);
    const auto plan = make_plan(Method::kGatherBroadcast, scenario, workload).value();
    EXPECT_TRUE(check_plan(plan, workload, scenario.cluster).empty());
    std::set<std::uint32_t> roots;
    for (const auto& collective : plan.stages.back().collectives) {
        roots.insert(plan.groups[collective.groups].front().front().index());
    }
    EXPECT_TRUE(std::ranges::includes(std::set<std::uint32_t>{0, 1, 12, 13}, roots));
    EXPECT_TRUE(roots.contains(12));
    scenario.engine.options.broadcast_root = BroadcastRoot::kTrainer0;
    scenario.engine.options.broadcast_senders = 1;
    scenario.engine.options.broadcast_group =
        BroadcastGroup::kPairs;  // 8 generators with the 8 that still gather.
    const auto paired = make_plan(Method::kGatherBroadcast, scenario, workload).value();
    EXPECT_TRUE(check_plan(paired, workload, scenario.cluster).empty());
    const auto fewer = experts("0,11");
    auto pairs = fewer;
    pairs.engine.options = scenario.engine.options;
    EXPECT_TRUE(make_plan(Method::kGatherBroadcast, pairs, Workload::make(pairs)));
    auto plain = experts("0,7,8,15");
    plain.engine.options = scenario.engine.options;
    EXPECT_EQ(make_plan(Method::kGatherBroadcast, plain, Workload::make(plain)).error().front().rule,
              "broadcast-pairs");
}

TEST(Losses, KeepTheOptimalPlanNearItsBound) {
    for (const auto* lost : {"", "1", "1,9", "17"}) {
        const auto scenario = experts(lost);
        const auto workload = Workload::make(scenario);
        const auto plan = make_plan(Method::kOptimal, scenario, workload).value();
        EXPECT_LE(certify(plan, scenario, workload).ratio(), 1.1) << lost;
    }
}

/// The same removal from distributions that no layout gave, by hand: every element still arrives, run as
/// programs.
TEST(Losses, LetProgramsOfRandomRefitsDeliverEveryElement) {
    const auto system = shipped_library().system("h100-nvl8", "system").value();
    int run = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        Dice dice{seed};
        const auto refit = random_refit(dice, system, 200);
        Losses losses;
        for (std::uint32_t rank = 0; rank < refit.cluster.gpus(); ++rank) {
            if (dice.once_in(6)) {
                losses.lost.push_back(rank);
            }
        }
        const auto trainers = refit.cluster.train_gpus();
        const auto per_stage = refit.workload.trainers_per_stage();
        const auto left_of = [&](const Distribution& whole, std::uint32_t first) {
            std::vector<Shard> shards{whole.shards().begin(), whole.shards().end()};
            for (auto& shard : shards) {
                std::erase_if(shard.members,
                              [&](std::uint32_t member) { return losses.is_absent(first + member); });
            }
            std::erase_if(shards, [](const Shard& shard) { return shard.members.empty(); });
            return Distribution{{whole.shape().begin(), whole.shape().end()}, std::move(shards)};
        };
        std::vector<WorkloadClass> classes;
        bool is_whole = !losses.empty();
        for (const auto& entry : refit.workload.classes()) {
            for (std::uint32_t stage = 0; stage < refit.workload.train_stages(); ++stage) {
                auto part = entry;
                std::erase_if(part.slices,
                              [&](const WorkloadSlice& slice) { return slice.train_stage != stage; });
                if (part.slices.empty()) {
                    continue;
                }
                std::uint32_t layers = 0;
                std::ranges::for_each(part.slices,
                                      [&](const WorkloadSlice& slice) { layers += slice.layers; });
                part.parameter.layers.resize(layers);
                part.source = left_of(entry.source, stage * per_stage);
                is_whole = is_whole && part.source.shards().size() == entry.source.shards().size();
                for (auto& destination : part.destinations) {
                    destination = left_of(destination, trainers);
                }
                classes.push_back(std::move(part));
            }
        }
        if (!is_whole || losses.is_absent(0)) {
            continue;
        }
        const auto cluster = refit.cluster.without(losses);
        const auto workload = Workload::of(std::move(classes),
                                           refit.workload.train_stages(),
                                           per_stage,
                                           refit.cluster.generate_gpus(),
                                           losses);
        for (const auto method :
             {Method::kGatherBroadcast, Method::kDirect, Method::kStriped, Method::kOptimal}) {
            const auto plan = make_plan(method, cluster, refit.rates, workload).value();
            const auto faults = check_plan(plan, workload, cluster);
            ASSERT_TRUE(faults.empty()) << faults.front().message << ", seed " << seed;
            const program::Schedule schedule{plan, workload, trainers, {}};
            std::vector<program::RankProgram> programs;
            for (std::uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
                programs.push_back(schedule.program_of(rank));
                if (losses.is_absent(rank)) {
                    ASSERT_TRUE(programs.back().regions.empty());
                }
            }
            ASSERT_EQ(schedule.members(), survivors(losses, schedule.ranks()));
            ASSERT_EQ(testing_support::run_programs(programs, workload, trainers, 32), "")
                << name_of(method) << ", seed " << seed;
            ++run;
        }
    }
    EXPECT_GE(run, 40);
}

TEST(Losses, AreFoundWhereAPlanNamesThem) {
    const auto scenario = experts("");
    const auto workload = Workload::make(scenario);
    const auto rest = experts("17");
    const auto left = Workload::make(rest);
    for (const auto method :
         {Method::kGatherBroadcast, Method::kDirect, Method::kStriped, Method::kOptimal}) {
        EXPECT_FALSE(check_plan(make_plan(method, scenario, workload).value(), left, rest.cluster).empty())
            << name_of(method);
    }
    // A relay over the idle rank 16, which the elements alone would allow.
    auto plan = make_plan(Method::kOptimal, rest, left).value();
    auto& relays = plan.stages.front().relays;
    relays.message.push_back(0);
    relays.source.push_back(relays.source.front());
    relays.destination.push_back(16);
    relays.follows.push_back(relays.follows.front());
    const auto faults = check_plan(plan, left, rest.cluster);
    ASSERT_FALSE(faults.empty());
    EXPECT_EQ(faults.front().rule, "relay-hop");
    // Members of a workload that are said to be lost.
    std::vector<WorkloadClass> classes{workload.classes().begin(), workload.classes().end()};
    const auto wrong = Workload::of(std::move(classes), 2, 8, 8, rest.cluster.losses());
    const auto found = check_plan(make_plan(Method::kDirect, rest, left).value(), wrong, rest.cluster);
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.front().rule, "workload-absent");
}

TEST(Losses, ArePartOfWhatRanksMustAgreeOn) {
    const auto scenario = experts("17");
    const auto workload = Workload::make(scenario);
    const auto plan = make_plan(Method::kDirect, scenario, workload).value();
    std::vector<WorkloadClass> classes{workload.classes().begin(), workload.classes().end()};
    const auto other = Workload::of(std::move(classes), 2, 8, 8, Losses{{16, 17}, {}});
    const auto none = Workload::of({workload.classes().begin(), workload.classes().end()}, 2, 8, 8);
    const auto digest = [&](const Workload& moved) { return program::Schedule{plan, moved, 16}.digest(); };
    EXPECT_NE(digest(workload), digest(none));
    EXPECT_EQ(digest(workload), digest(other));  // The same ranks take part in the same.
}

}  // namespace
}  // namespace refit
