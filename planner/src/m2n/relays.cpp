// SPDX-License-Identifier: Apache-2.0
#include "refit/m2n_relays.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "refit/m2n.hpp"
#include "refit/m2n_calls.hpp"

namespace refit {
namespace {

/// CTAs of the kernel: slices of a message that are handed on one by one. Source: NCCL M2N 0.2, NCCL_RESHARD_NUM_CTAS.
constexpr std::uint32_t kSlices = 8;

/// Where the shards of one side lie: the box of each, and the rank at each place of the communicator.
struct SideMap {
    std::vector<Box> boxes;                      ///< By shard, as M2N numbers them.
    std::map<std::uint32_t, std::uint32_t> rank; ///< Over the job, by place in the communicator.
};

SideMap map_side(const M2nSide& side, const Distribution& distribution, std::uint32_t first_rank) {
    auto shards = std::vector<Shard>(distribution.shards().begin(), distribution.shards().end());
    std::ranges::sort(shards, {}, [&](const Shard& shard) { return shard.boxes.front().axes()[side.axis].begin; });
    SideMap map;
    for (std::uint32_t shard = 0; shard < shards.size(); ++shard) {
        map.boxes.push_back(shards[shard].boxes.front());
        for (std::uint32_t replica = 0; replica < shards[shard].members.size(); ++replica) {
            map.rank[side.rank_of(shard, replica).index()] = first_rank + shards[shard].members[replica];
        }
    }
    return map;
}

class RelayBuilder {
public:
    RelayBuilder(const Scenario& scenario, const Workload& workload) : scenario_{scenario}, workload_{workload} {
        table_.chunks = kSlices;
    }

    void add(const M2nStageCalls& calls) {
        const auto& entry = workload_.classes()[calls.parameter];
        const auto& plan = plan_of(calls);
        source_ = map_side(plan.source, m2n_source(entry, workload_.losses()), calls.train_stage * workload_.trainers_per_stage());
        destination_ = map_side(plan.destination, entry.destinations[calls.generate_stage], scenario_.cluster.train_gpus());
        add_messages(plan, calls, entry);
        arrived_.clear();
        for (const auto& injection : plan.injections) {
            arrived_[{injection.pair, injection.destination.index()}] =
                hop(injection.pair, source_.rank.at(injection.source.index()),
                    destination_.rank.at(injection.destination.index()), RelayTable::kNone);
        }
        add_rings(plan);
        for (const auto& at : plan.destinations) {
            for (const auto follower : plan.followers_of(at)) {
                hand_on(at, follower);
            }
        }
    }

    RelayTable take() { return std::move(table_); }

private:
    const M2nPlan& plan_of(const M2nStageCalls& calls) {
        const auto known = std::ranges::find_if(plans_, [&](const auto& entry) {
            return entry.first.call == calls.call && entry.first.settings == calls.settings;
        });
        if (known != plans_.end()) {
            return known->second;
        }
        return plans_.emplace_back(calls, m2n_plan(*calls.call, calls.settings).value()).second;
    }

    void add_messages(const M2nPlan& plan, const M2nStageCalls& calls, const WorkloadClass& entry) {
        const auto slice = static_cast<std::uint32_t>(
            std::ranges::find_if(entry.slices,
                                 [&](const WorkloadSlice& candidate) {
                                     return candidate.train_stage == calls.train_stage &&
                                            candidate.generate_stage == calls.generate_stage;
                                 }) -
            entry.slices.begin());
        first_message_ = static_cast<std::uint32_t>(table_.messages.size());
        for (const auto& pair : plan.pairs) {
            const auto box = intersection(source_.boxes[pair.source_shard], destination_.boxes[pair.destination_shard]).value();
            table_.messages.push_back({static_cast<std::uint32_t>(table_.parts.size()), 1, pair.bytes * calls.calls});
            table_.parts.push_back({calls.parameter, slice, 0, static_cast<std::uint32_t>(calls.calls), box});
        }
    }

    std::uint32_t hop(std::uint32_t pair, std::uint32_t source, std::uint32_t destination, std::uint32_t follows) {
        table_.message.push_back(first_message_ + pair);
        table_.source.push_back(source);
        table_.destination.push_back(destination);
        table_.follows.push_back(follows);
        return static_cast<std::uint32_t>(table_.size() - 1);
    }

    /// Rings begin where sources inject; two may run into one, which then hands on what both bring.
    void add_rings(const M2nPlan& plan) {
        std::map<std::uint32_t, const M2nDestination*> by_place;
        for (const auto& at : plan.destinations) {
            by_place[at.rank.index()] = &at;
        }
        for (const auto& start : plan.destinations) {
            for (const auto* at = &start; start.is_direct && at->ring_next; at = by_place.at(at->ring_next->index())) {
                hand_on(*at, *at->ring_next);
            }
        }
    }

    /// All that a rank waited for itself goes on to another, unless that has it.
    void hand_on(const M2nDestination& at, RankId to) {
        for (auto pair = at.sources.begin; pair < at.sources.end; ++pair) {
            const auto from = arrived_.find({pair, at.rank.index()});
            if (from != arrived_.end() && !arrived_.contains({pair, to.index()})) {
                const auto follows = from->second;
                arrived_[{pair, to.index()}] =
                    hop(pair, destination_.rank.at(at.rank.index()), destination_.rank.at(to.index()), follows);
            }
        }
    }

    const Scenario& scenario_;
    const Workload& workload_;
    std::vector<std::pair<M2nStageCalls, M2nPlan>> plans_;
    RelayTable table_;
    SideMap source_;
    SideMap destination_;
    std::uint32_t first_message_ = 0;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> arrived_;  ///< Hop by pair and place.
};

}  // namespace

Result<RelayTable> m2n_relays(const Scenario& scenario, const Workload& workload) {
    auto faults = m2n_scenario_faults(scenario, workload);
    if (!faults.empty()) {
        return fail(std::move(faults));
    }
    RelayBuilder builder{scenario, workload};
    for (const auto& calls : m2n_calls(scenario, workload)) {
        builder.add(calls);
    }
    return builder.take();
}

}  // namespace refit
