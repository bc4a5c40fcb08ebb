// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace refit::exec {

/// Division by a number that is known beforehand, as a multiplication and a shift: GPUs have no divider.
/// Range: divisors and dividends below 2^31.
/// Source: T. Granlund, P. Montgomery, Division by Invariant Integers using Multiplication, PLDI 1994,
/// figure 4.1.
struct Divider {
    std::uint32_t divisor = 1;
    std::uint32_t factor = 1;
    std::uint32_t shift = 0;

    /// Pre: 1 <= divisor < 2^31.
    [[nodiscard]] static constexpr Divider of(std::uint32_t divisor) noexcept {
        std::uint32_t shift = 0;
        while ((std::uint32_t{1} << shift) < divisor) {
            ++shift;
        }
        const std::uint64_t missing = (std::uint64_t{1} << shift) - divisor;
        return {divisor, static_cast<std::uint32_t>((missing << 32) / divisor + 1), shift};
    }
    [[nodiscard]] constexpr std::uint32_t quotient(std::uint32_t dividend) const noexcept {
        const auto high = static_cast<std::uint32_t>((std::uint64_t{dividend} * factor) >> 32);
        return (high + dividend) >> shift;
    }
};

}  // namespace refit::exec
