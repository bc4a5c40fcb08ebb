// SPDX-License-Identifier: Apache-2.0
#include "refit/broadcast_roots.hpp"

#include <algorithm>
#include <utility>

namespace refit {
namespace {

bool has_each_stage(const Scenario& scenario) {
    return scenario.engine.options.broadcast_root == BroadcastRoot::kEachStage;
}

}  // namespace

std::vector<SentPacks> dealt_packs(const Scenario& scenario,
                                   const Workload& workload,
                                   std::span<const std::uint32_t> classes,
                                   Bytes target) {
    std::vector<SentPacks> roots;
    const auto order = export_order(workload, classes);
    const auto stages = has_each_stage(scenario) ? scenario.train.pp : 1U;
    const auto senders = scenario.engine.options.broadcast_senders;
    for (std::uint32_t stage = 0; stage < stages; ++stage) {
        std::vector<ExportRun> runs;
        std::ranges::copy_if(order, std::back_inserter(runs), [&](const ExportRun& run) {
            return stages == 1 || workload.classes()[run.parameter].slices[run.slice].train_stage == stage;
        });
        auto packs = make_packs(runs, target.count());
        for (std::uint32_t sender = 0; sender < senders && sender < packs.size(); ++sender) {
            auto& root = roots.emplace_back();
            root.root = RankId{stage * scenario.train.ranks_per_stage() + sender};
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
    return has_each_stage(scenario) ? scenario.train.ranks_per_stage() : scenario.train.gpus;
}

}  // namespace refit
