// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "refit/box.hpp"
#include "refit/parameter.hpp"
#include "refit/vocabulary.hpp"

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
[[nodiscard]] constexpr Interval equal_part(std::uint64_t extent,
                                            std::uint64_t ways,
                                            std::uint64_t index) noexcept {
    return {extent / ways * index, extent / ways * (index + 1)};
}

/// Part `index` of `ways` by torch.chunk's rule: parts of ceil(extent / ways), later ones short, then empty.
[[nodiscard]] constexpr Interval chunk_part(std::uint64_t extent, std::uint64_t ways, std::uint64_t index) noexcept {
    const auto step = (extent + ways - 1) / ways;
    const auto begin = step * index < extent ? step * index : extent;
    return {begin, extent - begin < step ? extent : begin + step};
}

/// Part `index` where rows are padded to a multiple of `multiple` before they are cut; padding is left out.
[[nodiscard]] constexpr Interval padded_part(std::uint64_t extent,
                                             std::uint64_t multiple,
                                             std::uint64_t ways,
                                             std::uint64_t index) noexcept {
    const auto part = equal_part(padded_rows(extent, multiple), ways, index);
    return {part.begin < extent ? part.begin : extent, part.end < extent ? part.end : extent};
}

/// The part of each segment of `axis` that falls to `index` of `ways`: one box a segment.
[[nodiscard]] inline std::vector<Box> segment_parts(const Box& whole,
                                                    std::size_t axis,
                                                    const std::vector<std::uint64_t>& segments,
                                                    std::uint64_t ways,
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

/// One of the ranks between which a tensor is cut.
struct Cut {
    std::uint32_t ways;
    std::uint32_t coordinate;
};

/// The rows of a vocabulary that are padded to a multiple of `multiple`, without the padding: perhaps none.
[[nodiscard]] inline std::vector<Box> vocabulary_part(
    const ParameterClass& parameter, const Box& whole, std::size_t axis, std::uint64_t multiple, Cut cut) {
    const auto part = padded_part(parameter.shape[0], multiple, cut.ways, cut.coordinate);
    return part.length() == 0 ? std::vector<Box>{} : std::vector{whole.with(axis, part)};
}

/// The part of a replicated, column- or row-parallel tensor, the same in training and generation; `first` is
/// the axis of the tensor's own dim 0.
[[nodiscard]] inline std::vector<Box> linear_part(const ParameterClass& parameter,
                                                  const Box& whole,
                                                  std::size_t first,
                                                  Cut cut) {
    if (parameter.sharding == Sharding::kRow) {
        return {whole.with(first + 1, equal_part(parameter.shape[1], cut.ways, cut.coordinate))};
    }
    if (parameter.sharding != Sharding::kColumn) {
        return {whole};
    }
    return parameter.segments.empty()
               ? std::vector{whole.with(first, equal_part(parameter.shape[0], cut.ways, cut.coordinate))}
               : segment_parts(whole, first, parameter.segments, cut.ways, cut.coordinate);
}

}  // namespace refit
