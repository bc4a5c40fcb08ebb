// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "refit/box.hpp"

namespace refit::proof {

/// The same elements of consecutive tensors of a slice.
struct Region {
    Interval tensors;
    Box box;
    bool operator==(const Region&) const = default;

    [[nodiscard]] std::uint64_t elements() const noexcept { return tensors.length() * box.volume(); }
};

/// "tensors [0, 3), elements [0, 4) x [2, 8)".
[[nodiscard]] std::string describe(const Region& region);

/// Where written elements differ from wanted ones: the first cell of each kind.
struct Comparison {
    std::optional<Region> missing;    ///< Wanted, not written.
    std::optional<Region> repeated;   ///< Wanted, written more than once.
    std::optional<Region> unwanted;   ///< Written, not wanted.
    std::optional<Region> ambiguous;  ///< Wanted more than once.
    std::uint64_t delivered = 0;      ///< Wanted elements that were written.

    [[nodiscard]] bool is_exact() const noexcept { return !missing && !repeated && !unwanted && !ambiguous; }
};

/// Compares every element, by cells in which all elements are alike: the cells between all bounds of all
/// regions, by axis; tensors are one axis more. `passing` counts as written where it is wanted, and may be
/// unwanted. Pre: all boxes have the same number of axes. Cost: in cells and regions.
[[nodiscard]] Comparison compare(std::span<const Region> wanted,
                                 std::span<const Region> written,
                                 std::span<const Region> passing);

/// Whether every element of `box` lies in one of `boxes`.
[[nodiscard]] bool covers(std::span<const Box> boxes, const Box& box);

}  // namespace refit::proof
