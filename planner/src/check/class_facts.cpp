// SPDX-License-Identifier: Apache-2.0
#include "class_facts.hpp"

#include <algorithm>

#include "region.hpp"

namespace refit::proof {
namespace {

std::vector<std::uint32_t> shard_by_member(const Distribution& distribution, std::size_t ranks) {
    std::vector<std::uint32_t> shards(ranks, ClassFacts::kNone);
    for (std::uint32_t i = 0; i < distribution.shards().size(); ++i) {
        for (const auto member : distribution.shards()[i].members) {
            shards[member] = i;
        }
    }
    return shards;
}

}  // namespace

ClassFacts::ClassFacts(const Workload& workload, std::uint32_t index, std::uint32_t train_gpus)
    : entry_{workload.classes()[index]},
      index_{index},
      train_stages_{workload.train_stages()},
      trainers_per_stage_{workload.trainers_per_stage()},
      train_gpus_{train_gpus},
      held_{shard_by_member(entry_.source, trainers_per_stage_)} {
    for (const auto& destination : entry_.destinations) {
        wanted_.push_back(shard_by_member(destination, workload.generator_bytes().size()));
    }
}

std::uint32_t ClassFacts::held_shard(std::uint32_t rank, std::uint32_t slice) const {
    const bool is_of_stage = rank < train_stages_ * trainers_per_stage_ &&
                             train_stage_of(rank) == entry_.slices[slice].train_stage;
    return is_of_stage ? held_[rank % trainers_per_stage_] : kNone;
}

bool ClassFacts::holds(std::uint32_t rank, std::uint32_t slice, const Box& box) const {
    const auto shard = held_shard(rank, slice);
    return shard != kNone && covers(entry_.source.shards()[shard].boxes, box);
}

std::uint32_t ClassFacts::wanted_shard(std::uint32_t rank, std::uint32_t slice) const {
    const auto& wanted = wanted_[entry_.slices[slice].generate_stage];
    return rank >= train_gpus_ && rank - train_gpus_ < wanted.size() ? wanted[rank - train_gpus_] : kNone;
}

const Distribution& ClassFacts::destination(std::uint32_t slice) const {
    return entry_.destinations[entry_.slices[slice].generate_stage];
}

bool ClassFacts::has_replicas(std::uint32_t slice) const {
    return std::ranges::any_of(destination(slice).shards(),
                               [](const Shard& shard) { return shard.members.size() > 1; });
}

std::vector<std::uint32_t> ClassFacts::slices_from(std::uint32_t train_stage) const {
    std::vector<std::uint32_t> slices;
    for (std::uint32_t i = 0; i < entry_.slices.size(); ++i) {
        if (entry_.slices[i].train_stage == train_stage) {
            slices.push_back(i);
        }
    }
    std::ranges::stable_sort(slices, {}, [&](std::uint32_t i) { return entry_.slices[i].generate_stage; });
    return slices;
}

}  // namespace refit::proof
