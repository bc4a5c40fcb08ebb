// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace refit {

/// Indices `begin` up to, not including, `end`.
struct Interval {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool operator==(const Interval&) const = default;
    [[nodiscard]] constexpr std::uint64_t length() const noexcept { return end - begin; }
};

/// Half-open n-dimensional interval of a logical tensor.
/// Invariant: 1 to kMostAxes axes, each with begin <= end.
class Box {
public:
    static constexpr std::size_t kMostAxes = 5;

    /// The whole of a tensor of this shape. Pre: 1 to kMostAxes extents.
    [[nodiscard]] static Box whole(std::span<const std::uint64_t> shape);

    [[nodiscard]] std::span<const Interval> axes() const noexcept { return {axes_.data(), count_}; }
    /// The same box with another interval on `axis`. Pre: the axis exists, begin <= end.
    [[nodiscard]] Box with(std::size_t axis, Interval interval) const;
    /// Number of elements. Range: [0, 2^64); shapes are checked when an inventory is made.
    [[nodiscard]] std::uint64_t volume() const noexcept;

    bool operator==(const Box&) const = default;

private:
    std::array<Interval, kMostAxes> axes_{};
    std::size_t count_ = 0;
};

/// The elements that both boxes have, or nothing. Pre: the same number of axes.
[[nodiscard]] std::optional<Box> intersection(const Box& a, const Box& b);

}  // namespace refit
