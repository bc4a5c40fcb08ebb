// SPDX-License-Identifier: Apache-2.0
#include "refit/slices.hpp"

#include <stdexcept>
#include <utility>
#include <vector>

#include "refit/overlap.hpp"

namespace refit {
namespace {

std::vector<std::uint32_t> shifted(const std::vector<std::uint32_t>& members, std::uint32_t first) {
    auto ranks = members;
    for (auto& rank : ranks) {
        rank += first;
    }
    return ranks;
}

}  // namespace

std::size_t SliceTable::SetHash::operator()(const std::vector<std::uint32_t>& ranks) const noexcept {
    // FNV-1a over whole ranks.
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const auto rank : ranks) {
        hash = (hash ^ rank) * 0x100000001b3U;
    }
    return static_cast<std::size_t>(hash);
}

std::uint32_t SliceTable::intern(std::vector<std::uint32_t> ranks) {
    const auto next = static_cast<std::uint32_t>(rank_sets_.size());
    const auto [found, is_new] = known_sets_.try_emplace(std::move(ranks), next);
    if (is_new) {
        rank_sets_.push_back(found->first);
    }
    return found->second;
}

std::uint32_t SliceTable::slice_of(std::uint32_t holders, std::uint32_t receivers) {
    const auto next = static_cast<std::uint32_t>(slices_.size());
    const auto key = (std::uint64_t{holders} << 32U) | receivers;
    const auto [found, is_new] = known_slices_.try_emplace(key, next);
    if (is_new) {
        slices_.push_back({holders, receivers, 0});
        parts_.emplace_back();
    }
    return found->second;
}

SliceTable SliceTable::of(std::vector<std::vector<std::uint32_t>> rank_sets, const std::vector<Slice>& slices) {
    SliceTable table;
    std::vector<std::uint32_t> indices;
    for (auto& ranks : rank_sets) {
        if (ranks.empty()) {
            throw std::logic_error{"SliceTable: an empty rank set"};
        }
        indices.push_back(table.intern(std::move(ranks)));
    }
    for (const auto& slice : slices) {
        const auto index = table.slice_of(indices.at(slice.holders), indices.at(slice.receivers));
        table.slices_[index].bytes += slice.bytes;
        if (slice.bytes > 0) {
            table.parts_[index].push_back({0, 0, 0, 1, Box::whole(std::vector{slice.bytes})});
        }
    }
    table.element_bytes_ = {1};
    return table;
}

SliceTable SliceTable::make(const Workload& workload, std::uint32_t train_gpus) {
    SliceTable table;
    for (std::uint32_t index = 0; index < workload.classes().size(); ++index) {
        table.add_class(workload, index, train_gpus);
    }
    return table;
}

void SliceTable::add_class(const Workload& workload, std::uint32_t index, std::uint32_t train_gpus) {
    const auto& entry = workload.classes()[index];
    element_bytes_.push_back(entry.element_bytes());
    for (std::uint32_t generate = 0; generate < entry.destinations.size(); ++generate) {
        const auto& destination = entry.destinations[generate];
        std::vector<std::uint32_t> receivers;
        for (const auto& shard : destination.shards()) {
            receivers.push_back(intern(shifted(shard.members, train_gpus)));
        }
        std::vector<OverlapCell> cells;
        for (std::uint32_t number = 0; number < entry.slices.size(); ++number) {
            const auto& stages = entry.slices[number];
            if (stages.generate_stage != generate) {
                continue;
            }
            if (cells.empty()) {
                cells = overlap(entry.source, destination);
            }
            std::vector<std::uint32_t> holders;
            for (const auto& shard : entry.source.shards()) {
                holders.push_back(intern(shifted(shard.members, stages.train_stage * workload.trainers_per_stage())));
            }
            for (const auto& cell : cells) {
                const auto slice = slice_of(holders[cell.source], receivers[cell.destination]);
                slices_[slice].bytes =
                    (Bytes{slices_[slice].bytes} + Bytes{cell.box.volume()} * entry.element_bytes() * stages.layers).count();
                parts_[slice].push_back({index, number, 0, stages.layers, cell.box});
            }
        }
    }
}

std::span<const MessagePart> SliceTable::parts(std::size_t slice) const { return parts_.at(slice); }

}  // namespace refit
