// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "mutation_tools.hpp"

namespace refit::testing_support {
namespace {

template <class Fits>
std::pair<PlanStage*, std::size_t> any_collective(Plan& plan, Dice& dice, Fits fits) {
    std::vector<std::pair<PlanStage*, std::size_t>> found;
    for (auto& stage : plan.stages) {
        for (std::size_t i = 0; i < stage.collectives.size(); ++i) {
            if (fits(stage.collectives[i])) {
                found.emplace_back(&stage, i);
            }
        }
    }
    return found.empty() ? std::pair<PlanStage*, std::size_t>{nullptr, 0} : found[dice.index(found.size())];
}

bool is_replicas(const Collective& collective) {
    return is_among_replicas(collective.role);
}
bool is_any(const Collective&) {
    return true;
}

constexpr Mutation kCollectiveMutations[] = {
    {"drop a collective",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         const auto [stage, index] = any_collective(plan, dice, is_any);
         if (stage != nullptr) {
             erase_at(stage->collectives, index);
         }
         return stage != nullptr;
     }},
    {"repeat a collective",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         const auto [stage, index] = any_collective(plan, dice, is_any);
         if (stage != nullptr) {
             const auto copy = stage->collectives[index];
             stage->collectives.push_back(copy);
         }
         return stage != nullptr;
     }},
    {"drop a member of a group",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* groups = any_of(plan.groups, dice);
         auto* group = groups == nullptr
                           ? nullptr
                           : any_that(*groups, dice, [](const auto& ranks) { return ranks.size() > 1; });
         if (group != nullptr) {
             erase_at(*group, dice.index(group->size()));
         }
         return group != nullptr;
     }},
    {"replace a member of a group",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* groups = any_of(plan.groups, dice);
         auto* group = groups == nullptr ? nullptr : any_of(*groups, dice);
         if (group == nullptr) {
             return false;
         }
         const RankId rank{dice.index(refit.cluster.gpus())};
         const bool is_new = std::ranges::none_of(
             *groups, [&](const auto& ranks) { return std::ranges::find(ranks, rank) != ranks.end(); });
         (*group)[dice.index(group->size())] = rank;
         return is_new;
     }},
    {"name a member twice",
     Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* groups = any_of(plan.groups, dice);
         auto* group = groups == nullptr ? nullptr : any_of(*groups, dice);
         if (group != nullptr) {
             group->push_back((*group)[dice.index(group->size())]);
         }
         return group != nullptr;
     }},
    {"take another root",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         const auto [stage, index] = any_collective(
             plan, dice, [](const Collective& collective) { return is_broadcast(collective.role); });
         auto* group =
             stage == nullptr ? nullptr : any_of(plan.groups[stage->collectives[index].groups], dice);
         if (group != nullptr) {
             std::swap(group->front(), (*group)[dice.index(group->size())]);
         }
         return group != nullptr;
     }},
    {"say too few bytes in a collective",
     Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         const auto [stage, index] = any_collective(
             plan, dice, [](const Collective& collective) { return collective.bytes.front() > 0; });
         if (stage != nullptr) {
             stage->collectives[index].bytes.front() -= 1;
         }
         return stage != nullptr;
     }},
    {"say too many bytes in a collective without padding",
     Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         const auto [stage, index] = any_collective(plan, dice, [](const Collective& collective) {
             return is_among_replicas(collective.role) || collective.role == CollectiveRole::kWeightBroadcast;
         });
         if (stage != nullptr) {
             stage->collectives[index].bytes.back() += 1;
         }
         return stage != nullptr;
     }},
    {"call a collective once more or less",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         const auto [stage, index] = any_collective(plan, dice, is_replicas);
         if (stage != nullptr) {
             stage->collectives[index].calls += dice.once_in(2) ? 1 : std::uint64_t(-1);
         }
         return stage != nullptr;
     }},
    {"exchange gather and broadcast among replicas",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         const auto [stage, index] = any_collective(plan, dice, is_replicas);
         if (stage != nullptr) {
             auto& role = stage->collectives[index].role;
             role =
                 is_broadcast(role) ? CollectiveRole::kReplicaAllGather : CollectiveRole::kReplicaBroadcast;
         }
         return stage != nullptr;
     }},
    {"leave a class out of a collective",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         const auto [stage, index] = any_collective(
             plan, dice, [](const Collective& collective) { return collective.parameters.size() > 1; });
         if (stage != nullptr) {
             auto& classes = stage->collectives[index].parameters;
             erase_at(classes, dice.index(classes.size()));
         }
         return stage != nullptr;
     }},
    {"let a collective move another class",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         const auto [stage, index] = any_collective(
             plan, dice, [](const Collective& collective) { return collective.parameters.size() == 1; });
         if (stage == nullptr) {
             return false;
         }
         auto& parameter = stage->collectives[index].parameters.front();
         return std::exchange(parameter, dice.index(refit.workload.classes().size())) != parameter;
     }},
    {"drop a stage",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         if (plan.stages.empty()) {
             return false;
         }
         erase_at(plan.stages, dice.index(plan.stages.size()));
         return true;
     }},
    {"repeat a stage",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         if (plan.stages.empty()) {
             return false;
         }
         const auto copy = plan.stages[dice.index(plan.stages.size())];
         plan.stages.push_back(copy);
         return true;
     }},
    {"broadcast before the gather",
     Proof::kByElements,
     [](Plan& plan, Dice&, const RandomRefit&) {
         const bool is_fit = plan.method == Method::kGatherBroadcast && plan.stages.size() == 2;
         if (is_fit) {
             std::swap(plan.stages.front(), plan.stages.back());
         }
         return is_fit;
     }},
};

}  // namespace

std::span<const Mutation> collective_mutations() {
    return kCollectiveMutations;
}

}  // namespace refit::testing_support
