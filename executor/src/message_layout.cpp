// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/message_layout.hpp"

#include <algorithm>

namespace refit::exec {
namespace {

using program::Landing;
using program::Operation;
using program::Part;
using program::Region;

std::uint64_t message_address(const StridedCopy& copy, MessageSide side) {
    return side == MessageSide::kSource ? copy.source : copy.destination;
}
std::uint64_t memory_address(const StridedCopy& copy, MessageSide side) {
    return side == MessageSide::kSource ? copy.destination : copy.source;
}

/// A box inside two boxes that are stored row-major at two addresses: the region's and the part's.
StridedCopy copy_between(const Box& box,
                         const Box& from,
                         std::uint64_t source,
                         const Box& to,
                         std::uint64_t destination,
                         std::uint64_t element_bytes) {
    StridedCopy copy = copy_of(box, from, to, element_bytes);
    copy.source += source;
    copy.destination += destination;
    return copy;
}

bool is_dense(const StridedCopy& copy, MessageSide side) {
    std::uint64_t length = copy.run;
    for (std::size_t axis = copy.axes; axis-- > 0;) {
        if ((side == MessageSide::kSource ? copy.source_step[axis] : copy.destination_step[axis]) != length) {
            return false;
        }
        length *= copy.count[axis];
    }
    return true;
}

}  // namespace

MessageCopies copies_of(const Operation& operation, const RankView& rank, std::uint64_t message) {
    MessageCopies copies;
    for (const Landing& landing : operation.landings) {
        if (landing.box.volume() == 0) {
            continue;
        }
        const Part& part = operation.parts.at(landing.part);
        const Region& region = rank.regions[landing.region];
        const std::uint64_t memory = rank.arenas.at(static_cast<std::size_t>(region.arena)) + region.offset;
        const std::uint64_t place = message + part.offset;
        if (operation.gives(part)) {
            copies.gives.push_back(
                copy_between(landing.box, region.box, memory, part.box, place, part.element_bytes));
        } else {
            copies.takes.push_back(
                copy_between(landing.box, part.box, place, region.box, memory, part.element_bytes));
        }
    }
    return copies;
}

MessageRange given_by(const Operation& operation, std::uint32_t place) {
    MessageRange range;
    for (const Part& part : operation.parts) {
        if (part.owner < place) {
            range.begin = part.offset + part.bytes();
        }
        if (part.owner <= place) {
            range.end = part.offset + part.bytes();
        }
    }
    return range;
}

std::optional<std::vector<StridedCopy>> in_message_order(std::vector<StridedCopy> copies,
                                                         MessageSide side,
                                                         std::uint64_t message,
                                                         const MessageRange& range) {
    std::ranges::sort(copies, {}, [&](const StridedCopy& copy) { return message_address(copy, side); });
    std::uint64_t reached = message + range.begin;
    for (const StridedCopy& copy : copies) {
        if (message_address(copy, side) != reached || !is_dense(copy, side)) {
            return std::nullopt;
        }
        reached += copy.bytes();
    }
    if (reached != message + range.end) {
        return std::nullopt;
    }
    return copies;
}

std::optional<std::uint64_t> contiguous_memory(std::span<const StridedCopy> ordered, MessageSide side) {
    if (ordered.empty()) {
        return std::nullopt;
    }
    const std::uint64_t begin = memory_address(ordered.front(), side);
    std::uint64_t reached = begin;
    for (const StridedCopy& copy : ordered) {
        if (copy.axes > 0 || memory_address(copy, side) != reached) {
            return std::nullopt;
        }
        reached += copy.run;
    }
    return begin;
}

}  // namespace refit::exec
