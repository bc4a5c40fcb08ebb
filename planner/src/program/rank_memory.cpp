// SPDX-License-Identifier: Apache-2.0
#include "rank_memory.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "box_tools.hpp"

namespace refit::program {
namespace {

const Shard* shard_of(const Distribution& distribution, std::uint32_t member) {
    for (const auto& shard : distribution.shards()) {
        if (std::ranges::binary_search(shard.members, member)) {
            return &shard;
        }
    }
    return nullptr;
}

constexpr std::uint64_t aligned(std::uint64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

RankMemory::RankMemory(const Workload& workload, std::uint32_t train_gpus, std::uint32_t rank)
    : workload_{workload}, rank_{rank}, is_trainer_{rank < train_gpus} {
    if (!is_trainer_) {
        add_destinations(rank - train_gpus);
        return;
    }
    for (const auto& entry : workload.classes()) {
        held_.push_back(shard_of(entry.source, rank % workload.trainers_per_stage()));
    }
}

void RankMemory::add_destinations(std::uint32_t member) {
    for (std::uint32_t parameter = 0; parameter < workload_.classes().size(); ++parameter) {
        const auto& entry = workload_.classes()[parameter];
        std::vector<const Shard*> wanted;
        for (const auto& destination : entry.destinations) {
            wanted.push_back(shard_of(destination, member));
        }
        for (std::uint32_t slice = 0; slice < entry.slices.size(); ++slice) {
            const auto* shard = wanted[entry.slices[slice].generate_stage];
            for (std::uint32_t t = 0; shard != nullptr && t < entry.slices[slice].layers; ++t) {
                for (const auto& box : shard->boxes) {
                    if (box.volume() > 0) {
                        destinations_[{parameter, slice, t}].push_back(
                            static_cast<std::uint32_t>(regions_.size()));
                        regions_.push_back({{parameter, slice, t},
                                            box,
                                            Arena::kDestination,
                                            static_cast<std::uint32_t>(entry.element_bytes())});
                    }
                }
            }
        }
    }
}

std::uint32_t RankMemory::source_region(const Tensor& tensor, std::size_t box) {
    const auto [found, is_new] =
        sources_.try_emplace({tensor, box}, static_cast<std::uint32_t>(regions_.size()));
    if (is_new) {
        const auto& entry = workload_.classes()[tensor.parameter];
        regions_.push_back({tensor,
                            held_[tensor.parameter]->boxes[box],
                            Arena::kSource,
                            static_cast<std::uint32_t>(entry.element_bytes())});
    }
    return found->second;
}

void RankMemory::give(const Part& part,
                      std::uint32_t index,
                      std::uint32_t wave,
                      std::vector<Landing>& landings) {
    std::vector<Box> missing{part.box};
    const auto& slice = workload_.classes()[part.tensor.parameter].slices[part.tensor.slice];
    if (is_trainer_ && held_[part.tensor.parameter] != nullptr &&
        slice.train_stage == rank_ / workload_.trainers_per_stage()) {
        const auto& boxes = held_[part.tensor.parameter]->boxes;
        for (std::size_t i = 0; i < boxes.size(); ++i) {
            take_from(missing, boxes[i], [&](const Box& common) {
                landings.push_back({index, source_region(part.tensor, i), common});
            });
        }
    }
    for (auto* places : {&destinations_, &scratch_}) {
        const auto found = places->find(part.tensor);
        for (const auto region : found == places->end() ? std::vector<std::uint32_t>{} : found->second) {
            take_from(missing, Box{regions_[region].box}, [&](const Box& common) {
                regions_[region].last_wave = std::max(regions_[region].last_wave, wave);
                landings.push_back({index, region, common});
            });
        }
    }
    if (!missing.empty()) {
        throw std::logic_error{"Schedule: rank " + std::to_string(rank_) + " gives elements of " +
                               describe(workload_, part.tensor) + " that it has not"};
    }
}

void RankMemory::take(
    const Part& part, std::uint32_t index, std::uint32_t wave, Use use, std::vector<Landing>& landings) {
    std::vector<Box> left{part.box};
    const auto land = [&](const Tensor& tensor) {
        const auto found = destinations_.find(tensor);
        for (const auto region :
             found == destinations_.end() ? std::vector<std::uint32_t>{} : found->second) {
            take_from(left, regions_[region].box, [&](const Box& common) {
                landings.push_back({index, region, common});
            });
        }
    };
    land(part.tensor);
    const auto& slices = workload_.classes()[part.tensor.parameter].slices;
    for (std::uint32_t slice = 0; use.serves_copies && slice < slices.size(); ++slice) {
        if (slices[slice].is_copy && slice != part.tensor.slice && !slices[part.tensor.slice].is_copy) {
            const auto number = logical_number(workload_, part.tensor);
            if (number < slices[slice].layers) {
                land({part.tensor.parameter, slice, static_cast<std::uint32_t>(number)});
            }
        }
    }
    for (const auto& box : use.is_kept ? left : std::vector<Box>{}) {
        scratch_[part.tensor].push_back(static_cast<std::uint32_t>(regions_.size()));
        landings.push_back({index, static_cast<std::uint32_t>(regions_.size()), box});
        regions_.push_back({part.tensor, box, Arena::kScratch, part.element_bytes, 0, wave, wave});
    }
}

std::pair<std::vector<Region>, std::array<std::uint64_t, kArenas>> RankMemory::place(std::uint32_t waves) && {
    std::array<std::uint64_t, kArenas> sizes{};
    for (auto& region : regions_) {
        if (region.arena != Arena::kScratch) {
            auto& size = sizes[static_cast<std::size_t>(region.arena)];
            region.offset = size;
            size += aligned(region.bytes());
            region.last_wave =
                region.arena == Arena::kDestination && waves > 0 ? waves - 1 : region.last_wave;
        }
    }
    place_scratch(sizes[static_cast<std::size_t>(Arena::kScratch)]);
    return {std::move(regions_), sizes};
}

/// By first wave, each in the lowest gap that is wide enough among those that live by then.
void RankMemory::place_scratch(std::uint64_t& size) {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < regions_.size(); ++i) {
        if (regions_[i].arena == Arena::kScratch) {
            order.push_back(i);
        }
    }
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return regions_[i].first_wave; });
    std::map<std::uint64_t, std::uint32_t> living;  // Regions by their offset.
    std::uint32_t wave = 0;
    for (const auto i : order) {
        auto& region = regions_[i];
        if (region.first_wave != wave) {
            wave = region.first_wave;
            std::erase_if(living, [&](const auto& entry) { return regions_[entry.second].last_wave < wave; });
        }
        const auto bytes = aligned(region.bytes());
        std::uint64_t end = 0;
        for (const auto& [offset, other] : living) {
            if (end + bytes <= offset) {
                break;
            }
            end = offset + aligned(regions_[other].bytes());
        }
        region.offset = end;
        living.emplace(end, i);
        size = std::max(size, end + bytes);
    }
}

}  // namespace refit::program
