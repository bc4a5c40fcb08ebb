// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "element_run.hpp"
#include "plan_mutants.hpp"
#include "random_refit.hpp"
#include "refit/check.hpp"
#include "refit/methods.hpp"
#include "refit/overlap.hpp"

namespace refit {
namespace {

using testing_support::Dice;
using testing_support::Mutation;
using testing_support::Proof;
using testing_support::random_refit;
using testing_support::RandomRefit;
using testing_support::run_elements;

/// Mutants made and caught, by mutation.
struct Tally {
    std::map<std::string_view, int> made;
    std::map<std::string_view, int> caught;
};

/// Whether a mutant is wrong, as the arrays of elements or its construction say.
bool is_wrong(const Mutation& mutation, const Plan& mutant, const RandomRefit& refit) {
    return mutation.proof == Proof::kByConstruction ||
           !run_elements(mutant, refit.workload, refit.cluster).empty();
}

void try_mutation(
    const Mutation& mutation, const Plan& plan, Dice& dice, const RandomRefit& refit, Tally& tally) {
    auto mutant = plan;
    if (!mutation.apply(mutant, dice, refit) || mutant == plan) {
        return;
    }
    const bool is_refused = !check_plan(mutant, refit.workload, refit.cluster).empty();
    if (is_wrong(mutation, mutant, refit)) {
        ++tally.made[mutation.name];
        tally.caught[mutation.name] += is_refused ? 1 : 0;
    } else {
        // Another holder may send as well: no false alarm.
        EXPECT_FALSE(is_refused && mutation.name == "send from another trainer");
    }
}

constexpr std::uint64_t kRefits = 150;
constexpr std::uint64_t kBatches = 5;

class PlanMutants : public testing::TestWithParam<std::uint64_t> {};

TEST_P(PlanMutants, AreAllCaught) {
    const auto system = shipped_library().system("h100-nvl8", "system").value();
    const auto mutations = testing_support::mutations();
    Tally tally;
    for (auto seed = GetParam(); seed < kRefits; seed += kBatches) {
        Dice dice{seed};
        const auto refit = random_refit(dice, system, 120);
        for (const auto method :
             {Method::kGatherBroadcast, Method::kDirect, Method::kStriped, Method::kOptimal}) {
            const auto plan = testing_support::with_finer_parts(
                make_plan(method, refit.cluster, refit.rates, refit.workload).value());
            ASSERT_TRUE(check_plan(plan, refit.workload, refit.cluster).empty());
            ASSERT_EQ(run_elements(plan, refit.workload, refit.cluster), "");
            for (const auto& mutation : mutations) {
                try_mutation(mutation, plan, dice, refit, tally);
            }
        }
    }
    int made = 0;
    for (const auto& mutation : mutations) {
        made += tally.made[mutation.name];
        EXPECT_GE(tally.made[mutation.name], 1) << mutation.name;
        EXPECT_EQ(tally.caught[mutation.name], tally.made[mutation.name]) << mutation.name;
    }
    EXPECT_GE(made, 1500);
}

INSTANTIATE_TEST_SUITE_P(Batch, PlanMutants, testing::Range<std::uint64_t>(0, kBatches));

/// What may be wrong with one gathering collective, so that rank 0 lacks something.
void spoil(Plan& plan, Collective& collective, int way) {
    auto& groups = plan.groups[collective.groups];
    auto& group = *std::ranges::find_if(
        groups, [](const auto& ranks) { return std::ranges::find(ranks, RankId{0}) != ranks.end(); });
    switch (way) {
        case 0:
            collective.bytes.assign(collective.bytes.size(), 0);
            break;
        case 1:
            std::erase(group, RankId{0});
            break;
        case 2:
            // The root of a broadcast, or one of those that gather.
            std::erase(group, group.front() == RankId{0} ? group.back() : group.front());
            break;
        default:
            collective.parameters.pop_back();
    }
}

/// Rank 0 needs each of the engine's collectives but the pipeline broadcast of its own stage.
void plant_in_gathers(const std::string& name, Method method, int& made, int& caught) {
    const auto scenario = shipped_scenario(name);
    const auto workload = Workload::make(scenario);
    const auto plan = make_plan(method, scenario, workload).value();
    const auto gather =
        std::ranges::find(plan.stages, StageKind::kGather, &PlanStage::kind) - plan.stages.begin();
    const auto& collectives = plan.stages[static_cast<std::size_t>(gather)].collectives;
    for (std::size_t i = 0; i < collectives.size(); ++i) {
        if (collectives[i].role == CollectiveRole::kPipelineBroadcast &&
            plan.groups[collectives[i].groups].front().front() == RankId{0}) {
            continue;
        }
        for (int way = 0; way < 5; ++way) {
            auto mutant = plan;
            auto& changed = mutant.stages[static_cast<std::size_t>(gather)].collectives;
            if (way == 4) {
                changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
            } else {
                spoil(mutant, changed[i], way);
            }
            ++made;
            const bool is_caught = !check_plan(mutant, workload, scenario.cluster).empty();
            caught += is_caught ? 1 : 0;
            EXPECT_TRUE(is_caught) << name << ", " << name_of(method) << ", collective " << i << ", way "
                                   << way;
        }
    }
}

TEST(GatherMutants, OfTheEnginesCollectivesAreAllCaught) {
    int made = 0;
    int caught = 0;
    plant_in_gathers("qwen3-235b-h100", Method::kGatherBroadcast, made, caught);
    plant_in_gathers("qwen3-235b-h100", Method::kHybrid, made, caught);
    // 7 pipeline broadcasts and the TP all-gather each, and the EP all-gather of everything: 17 collectives,
    // 5 ways.
    EXPECT_EQ(made, 85);
    EXPECT_EQ(caught, made);
}

TEST(GatherMutants, OfHybridPlansOfOtherLayoutsAreAllCaught) {
    int made = 0;
    int caught = 0;
    // DeepSeek-V3 has no TP, and 16 stages of which rank 0 needs 15 broadcasts. Nemotron Ultra has 2 stages,
    // and TP, and puts its latent projections beside the bulk.
    plant_in_gathers("deepseek-v3-h100", Method::kHybrid, made, caught);
    EXPECT_EQ(made, 75);
    plant_in_gathers("nemotron-ultra-gb200", Method::kHybrid, made, caught);
    EXPECT_EQ(made, 85);
    EXPECT_EQ(caught, made);
}

/// Plans of hybrid with a change in its transfers: the first block of each stage, or its use.
void plant_in_transfers(const std::string& name, int& made, int& caught) {
    const auto scenario = shipped_scenario(name);
    const auto workload = Workload::make(scenario);
    const auto plan = make_plan(Method::kHybrid, scenario, workload).value();
    for (std::size_t i = 0; i < plan.stages.size(); ++i) {
        for (int way = 0; plan.stages[i].kind == StageKind::kTransfer && way < 6; ++way) {
            auto mutant = plan;
            auto& use = mutant.stages[i].transfers.front();
            mutant.blocks.push_back(mutant.blocks[use.block]);
            use.block = static_cast<std::uint32_t>(mutant.blocks.size() - 1);
            auto& block = mutant.blocks.back();
            switch (way) {
                case 0:
                    block.source.pop_back();
                    block.destination.pop_back();
                    block.box.pop_back();
                    break;
                case 1:
                    block.source.push_back(block.source.front());
                    block.destination.push_back(block.destination.front());
                    block.box.push_back(block.box.front());
                    break;
                case 2:
                    std::swap(block.destination.front(), block.destination.back());
                    break;
                case 3:
                    std::swap(block.box.front(), block.box.back());
                    break;
                case 4:
                    use.tensors -= 1;
                    break;
                default:
                    mutant.stages[i].collectives.clear();
            }
            const bool is_block_alike = block == plan.blocks[plan.stages[i].transfers.front().block];
            if (way < 4 ? is_block_alike : way == 5 && plan.stages[i].collectives.empty()) {
                continue;
            }
            ++made;
            const bool is_caught = !check_plan(mutant, workload, scenario.cluster).empty();
            caught += is_caught ? 1 : 0;
            EXPECT_TRUE(is_caught) << name << ", stage " << i << ", way " << way;
        }
    }
}

TEST(TransferMutants, OfHybridPlansAreAllCaught) {
    int made = 0;
    int caught = 0;
    for (const auto* name : {"qwen3-235b-h100", "deepseek-v3-h100", "nemotron-ultra-gb200"}) {
        plant_in_transfers(name, made, caught);
    }
    EXPECT_GE(made, 100);
    EXPECT_EQ(caught, made);
}

TEST(OverlapMutants, AreAllCaughtInThePlansMadeOfThem) {
    const auto system = shipped_library().system("h100-nvl8", "system").value();
    std::map<std::string_view, int> made;
    std::map<std::string_view, int> caught;
    for (std::uint64_t seed = 0; seed < kRefits; ++seed) {
        Dice dice{seed};
        const auto refit = random_refit(dice, system, 120);
        const auto cells = testing_support::cells_of(refit.workload);
        ASSERT_TRUE(check_plan(testing_support::plan_of(cells, refit.workload), refit.workload, refit.cluster)
                        .empty());
        for (const auto& mutation : testing_support::cell_mutations()) {
            auto spoilt = cells;
            const auto index = dice.index(cells.size());
            const auto generate = dice.index(cells[index].size());
            const auto& entry = refit.workload.classes()[index];
            auto& list = spoilt[index][generate];
            if (list.empty() || !mutation.apply(list, dice, entry.source, entry.destinations[generate])) {
                continue;
            }
            const auto mutant = testing_support::plan_of(spoilt, refit.workload);
            if (!run_elements(mutant, refit.workload, refit.cluster).empty()) {
                ++made[mutation.name];
                caught[mutation.name] += check_plan(mutant, refit.workload, refit.cluster).empty() ? 0 : 1;
            }
        }
    }
    for (const auto& mutation : testing_support::cell_mutations()) {
        EXPECT_GE(made[mutation.name], 10) << mutation.name;
        EXPECT_EQ(caught[mutation.name], made[mutation.name]) << mutation.name;
    }
}

}  // namespace
}  // namespace refit
