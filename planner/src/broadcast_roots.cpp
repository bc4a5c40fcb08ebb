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

/// The n-th of those who gather everything, or a stage's tensors. Pre: not more than there are.
RankId sender_of(const Scenario& scenario, const Gatherers& gatherers, std::uint32_t sphere, std::uint32_t number) {
    const auto& places = gatherers.places[sphere];
    const auto count = static_cast<std::uint32_t>(places.size());
    const auto stage = has_each_stage(scenario) ? sphere : number / count;
    return RankId{stage * scenario.train.ranks_per_stage() + places[number % count]};
}

}  // namespace

Gatherers gatherers_of(const Scenario& scenario) {
    const auto& train = scenario.train;
    const auto& losses = scenario.cluster.losses();
    const auto per_stage = train.ranks_per_stage();
    const bool by_stage = has_each_stage(scenario);
    Gatherers gatherers;
    for (std::uint32_t sphere = 0; sphere < (by_stage ? train.pp : 1U); ++sphere) {
        std::set<std::uint32_t> broken;  // Blocks.
        for (const auto rank : losses.lost) {
            if (rank < train.gpus && (!by_stage || rank / per_stage == sphere)) {
                broken.insert(rank % per_stage / block_of(train));
            }
        }
        auto& places = gatherers.places.emplace_back();
        for (std::uint32_t place = 0; place < per_stage; ++place) {
            if (!broken.contains(place / block_of(train))) {
                places.push_back(place);
            }
        }
        gatherers.is_plain = gatherers.is_plain || places.empty();
    }
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
    const auto stages = gatherers.is_plain ? 1U : static_cast<std::uint32_t>(gatherers.places.size());
    const auto senders = gatherers.is_plain ? 1U : scenario.engine.options.broadcast_senders;
    for (std::uint32_t stage = 0; stage < stages; ++stage) {
        std::vector<ExportRun> runs;
        std::ranges::copy_if(order, std::back_inserter(runs), [&](const ExportRun& run) {
            return stages == 1 || workload.classes()[run.parameter].slices[run.slice].train_stage == stage;
        });
        auto packs = make_packs(runs, target.count());
        for (std::uint32_t sender = 0; sender < senders && sender < packs.size(); ++sender) {
            auto& root = roots.emplace_back();
            root.root = gatherers.is_plain ? gatherers.first : sender_of(scenario, gatherers, stage, sender);
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
    const auto fewest = std::ranges::min(gatherers.places, {}, [](const auto& places) { return places.size(); }).size();
    return static_cast<std::uint32_t>(fewest) * (has_each_stage(scenario) ? 1 : scenario.train.pp);
}

}  // namespace refit
