// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "refit/box.hpp"
#include "refit/parameter.hpp"

namespace refit {

/// Shape of the logical tensor of one layer: experts stacked as the first axis.
[[nodiscard]] inline std::vector<std::uint64_t> logical_shape(const ParameterClass& parameter) {
    auto shape = parameter.shape;
    if (parameter.is_expert()) {
        shape.insert(shape.begin(), parameter.experts);
    }
    return shape;
}

/// Part `index` of `ways` equal parts of [0, extent). Pre: ways divides extent.
[[nodiscard]] constexpr Interval equal_part(std::uint64_t extent, std::uint64_t ways, std::uint64_t index) noexcept {
    return {extent / ways * index, extent / ways * (index + 1)};
}

/// Part `index` where rows are padded to a multiple of `multiple` before they are cut; padding is left out.
[[nodiscard]] constexpr Interval padded_part(std::uint64_t extent, std::uint64_t multiple, std::uint64_t ways,
                                             std::uint64_t index) noexcept {
    const auto padded = (extent + multiple - 1) / multiple * multiple;
    const auto part = equal_part(padded, ways, index);
    return {part.begin < extent ? part.begin : extent, part.end < extent ? part.end : extent};
}

/// The part of each segment of `axis` that falls to `index` of `ways`: one box a segment.
[[nodiscard]] inline std::vector<Box> segment_parts(const Box& whole, std::size_t axis,
                                                    const std::vector<std::uint64_t>& segments, std::uint64_t ways,
                                                    std::uint64_t index) {
    std::vector<Box> boxes;
    std::uint64_t offset = 0;
    for (const auto length : segments) {
        const auto part = equal_part(length, ways, index);
        boxes.push_back(whole.with(axis, {offset + part.begin, offset + part.end}));
        offset += length;
    }
    return boxes;
}

}  // namespace refit
