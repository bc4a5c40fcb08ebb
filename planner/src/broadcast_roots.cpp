// SPDX-License-Identifier: Apache-2.0
#include "refit/broadcast_roots.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace refit {
namespace {

bool has_each_stage(const Scenario& scenario) {
    return scenario.engine.options.broadcast_root == BroadcastRoot::kEachStage;
}

/// Ranks of a stage that gather together.
std::uint32_t block_of(const TrainLayout& train) {
    return train.is_fsdp() ? train.ranks_per_replica() : std::lcm(train.tp, train.etp * train.ep);
}

/// Places of each stage whose block is none of these: pairs of a stage and a block.
std::vector<std::vector<std::uint32_t>> places_without(const TrainLayout& train,
                                                       const std::set<std::pair<std::uint32_t, std::uint32_t>>& broken) {
    std::vector<std::vector<std::uint32_t>> places(train.pp);
    for (std::uint32_t stage = 0; stage < train.pp; ++stage) {
        for (std::uint32_t place = 0; place < train.ranks_per_stage(); ++place) {
            if (!broken.contains({stage, place / block_of(train)})) {
                places[stage].push_back(place);
            }
        }
    }
    return places;
}

}  // namespace

Gatherers gatherers_of(const Scenario& scenario) {
    const auto& train = scenario.train;
    const auto& losses = scenario.cluster.losses();
    const auto per_stage = train.ranks_per_stage();
    const bool by_stage = has_each_stage(scenario);
    std::set<std::pair<std::uint32_t, std::uint32_t>> broken;
    std::set<std::pair<std::uint32_t, std::uint32_t>> everywhere;  // As if all stages had lost what one has.
    for (const auto rank : losses.lost) {
        if (rank < train.gpus) {
            const auto block = rank % per_stage / block_of(train);
            broken.emplace(rank / per_stage, block);
            for (std::uint32_t stage = 0; stage < train.pp; ++stage) {
                everywhere.emplace(stage, block);
            }
        }
    }
    Gatherers gatherers;
    gatherers.places = places_without(train, by_stage ? broken : everywhere);
    if (gatherers.places.front().empty() && !by_stage) {
        gatherers.places = places_without(train, broken);
    }
    gatherers.roots.resize(by_stage ? train.pp : 1);
    for (std::uint32_t stage = 0; stage < train.pp; ++stage) {
        for (const auto place : gatherers.places[stage]) {
            gatherers.roots[by_stage ? stage : 0].emplace_back(stage * per_stage + place);
        }
    }
    gatherers.is_plain = std::ranges::any_of(gatherers.roots, [](const auto& roots) { return roots.empty(); });
    while (losses.is_absent(gatherers.first.index())) {
        gatherers.first = RankId{gatherers.first.index() + 1};
    }
    return gatherers;
}

bool gathers_by_stage(const Scenario& scenario) {
    return has_each_stage(scenario) && !gatherers_of(scenario).is_plain;
}

std::vector<SentPacks> dealt_packs(const Scenario& scenario,
                                   const Workload& workload,
                                   std::span<const std::uint32_t> classes,
                                   Bytes target) {
    std::vector<SentPacks> roots;
    const auto order = export_order(workload, classes);
    const auto gatherers = gatherers_of(scenario);
    const auto stages = gatherers.is_plain ? 1U : static_cast<std::uint32_t>(gatherers.roots.size());
    const auto senders = gatherers.is_plain ? 1U : scenario.engine.options.broadcast_senders;
    for (std::uint32_t stage = 0; stage < stages; ++stage) {
        std::vector<ExportRun> runs;
        std::ranges::copy_if(order, std::back_inserter(runs), [&](const ExportRun& run) {
            return stages == 1 || workload.classes()[run.parameter].slices[run.slice].train_stage == stage;
        });
        auto packs = make_packs(runs, target.count());
        for (std::uint32_t sender = 0; sender < senders && sender < packs.size(); ++sender) {
            auto& root = roots.emplace_back();
            root.root = gatherers.is_plain ? gatherers.first : gatherers.roots[stage][sender];
            root.runs = runs;
            for (std::size_t i = sender; i < packs.size(); i += senders) {
                root.packs.push_back(std::move(packs[i]));
                packs[i] = {};
            }
        }
    }
    return roots;
}

std::uint32_t most_senders(const Scenario& scenario) {
    const auto gatherers = gatherers_of(scenario);
    if (gatherers.is_plain) {
        return 1;
    }
    const auto fewest = std::ranges::min(gatherers.roots, {}, [](const auto& roots) { return roots.size(); });
    return static_cast<std::uint32_t>(fewest.size());
}

}  // namespace refit
