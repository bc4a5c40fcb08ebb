// SPDX-License-Identifier: Apache-2.0
#include "overlap.hpp"

#include <algorithm>

namespace refit::m2n {
namespace {

/// Parts of one cut of `extent` that meet part `index` of another cut.
M2nRange parts_meeting(std::uint64_t extent,
                       std::uint32_t parts,
                       std::uint32_t other_parts,
                       std::uint32_t index) {
    const auto length = extent / parts;
    const auto other_length = extent / other_parts;
    const auto begin = index * other_length;
    const auto last = begin + other_length - 1;
    return {static_cast<std::uint32_t>(begin / length), static_cast<std::uint32_t>(last / length + 1)};
}

}  // namespace

ShardOverlap::ShardOverlap(const M2nTensor& tensor, const M2nSide& source, const M2nSide& destination)
    : extents_{tensor.shape}, source_{source}, destination_{destination} {
    extents_.back() *= tensor.element_bytes;
}

M2nRange ShardOverlap::sources_of(std::uint32_t destination) const noexcept {
    return is_same_axis()
               ? parts_meeting(extents_[source_.axis], source_.shards, destination_.shards, destination)
               : M2nRange{0, source_.shards};
}

M2nRange ShardOverlap::destinations_of(std::uint32_t source) const noexcept {
    return is_same_axis() ? parts_meeting(extents_[source_.axis], destination_.shards, source_.shards, source)
                          : M2nRange{0, destination_.shards};
}

M2nPair ShardOverlap::pair(std::uint32_t source, std::uint32_t destination) const noexcept {
    const auto extent_of = [&](std::size_t axis) {
        const bool by_source = axis == source_.axis;
        const bool by_destination = axis == destination_.axis;
        const auto source_length = extents_[axis] / (by_source ? source_.shards : 1);
        const auto destination_length = extents_[axis] / (by_destination ? destination_.shards : 1);
        if (by_source && by_destination) {
            return std::min((source + 1) * source_length, (destination + 1) * destination_length) -
                   std::max(source * source_length, destination * destination_length);
        }
        return std::min(source_length, destination_length);
    };
    // M2N takes an axis as cut even where it is cut into one part, so its runs may be shorter than memory
    // allows.
    auto axis = extents_.size() - 1;
    auto run = extent_of(axis);
    while (axis > 0 && axis != source_.axis && axis != destination_.axis) {
        run *= extent_of(--axis);
    }
    std::uint64_t runs = 1;
    for (std::size_t outer = 0; outer < axis; ++outer) {
        runs *= extent_of(outer);
    }
    return {source, destination, run * runs, run, runs};
}

std::uint64_t ShardOverlap::bytes() const noexcept {
    std::uint64_t product = 1;
    for (const auto extent : extents_) {
        product *= extent;
    }
    return product;
}

std::uint64_t ShardOverlap::local_bytes() const noexcept {
    return bytes() / std::min(source_.shards, destination_.shards);
}

}  // namespace refit::m2n
