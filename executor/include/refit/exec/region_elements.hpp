// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "refit/exec/values.hpp"

namespace refit::exec {

/// Elements of a logical tensor that lie one after the other, row by row of a box, as a kernel reads them.
/// All that works on them is constexpr, so that host and device run the same arithmetic.
struct RegionElements {
    static constexpr std::uint32_t kMostAxes = 5;

    std::uint64_t address = 0;
    std::uint64_t seed = 0;                              ///< As seed_of gives it.
    std::uint64_t base = 0;                              ///< Logical index of the first element.
    std::uint64_t count = 0;                             ///< Elements.
    std::uint64_t extents[kMostAxes] = {1, 1, 1, 1, 1};  ///< Of the box, the innermost axis first.
    std::uint64_t strides[kMostAxes] = {};               ///< In logical indices.
    std::uint32_t element_bytes = 1;                     ///< Range: 1, 2, 4.
};

/// Row-major index in the logical tensor of the element at `place` in the box. Pre: place < count.
[[nodiscard]] constexpr std::uint64_t logical_index(const RegionElements& elements,
                                                    std::uint64_t place) noexcept {
    std::uint64_t index = elements.base;
    for (std::uint32_t axis = 0; axis < RegionElements::kMostAxes; ++axis) {
        const std::uint64_t next = place / elements.extents[axis];
        index += (place - next * elements.extents[axis]) * elements.strides[axis];
        place = next;
    }
    return index;
}

/// What the element holds; the low bytes of it.
[[nodiscard]] constexpr std::uint64_t element_value(const RegionElements& elements,
                                                    std::uint64_t place) noexcept {
    return value_of(elements.seed, logical_index(elements, place));
}

/// What a comparison of elements found.
struct ElementVerdict {
    std::uint64_t first_wrong =
        ~std::uint64_t{0};       ///< Place in the box of the first that differs; as it is: none.
    std::uint64_t checksum = 0;  ///< The sum of element i times kChecksumFactor^(count - 1 - i).
};

/// As RankRecord's checksum has it: each element is added to this times what was before.
inline constexpr std::uint64_t kChecksumFactor = 0x100000001b3U;

/// `base` to a power, modulo 2^64.
[[nodiscard]] constexpr std::uint64_t power(std::uint64_t base, std::uint64_t exponent) noexcept {
    std::uint64_t result = 1;
    for (; exponent > 0; exponent >>= 1U, base *= base) {
        result *= (exponent & 1U) != 0 ? base : 1;
    }
    return result;
}

/// What times `odd` gives 1, modulo 2^64: Newton's iteration, which doubles the right bits each time, from 3.
[[nodiscard]] constexpr std::uint64_t inverse(std::uint64_t odd) noexcept {
    std::uint64_t result = odd;
    for (int step = 0; step < 5; ++step) {
        result *= 2 - odd * result;
    }
    return result;
}

}  // namespace refit::exec
