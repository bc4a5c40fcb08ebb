// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace refit::exec {

/// Spreads every bit of `bits` over all of the result. One to one.
/// Source: the finaliser of splitmix64 (Steele, Lea, Flood 2014).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t bits) noexcept {
    bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
    return bits ^ (bits >> 31U);
}

/// From which all values of a logical tensor follow. `parameter` and `number` as in program::logical_number:
/// copies have the values of what they copy.
[[nodiscard]] constexpr std::uint64_t seed_of(std::uint64_t version,
                                              std::uint64_t parameter,
                                              std::uint64_t number) noexcept {
    return mixed(mixed(mixed(version + 0x9e3779b97f4a7c15U) + parameter) + number);
}

/// What element `index` (row-major, of the logical tensor) of a version holds: the low bytes of this,
/// little-endian. Shadow destinations are filled with its complement, so that no element is right before it
/// is written.
[[nodiscard]] constexpr std::uint64_t value_of(std::uint64_t seed, std::uint64_t index) noexcept {
    return mixed(seed + index * 0x9e3779b97f4a7c15U);
}

/// The low `element_bytes` bytes. Range: 1, 2, 4.
[[nodiscard]] constexpr std::uint64_t narrowed(std::uint64_t value, std::uint32_t element_bytes) noexcept {
    return value & ((std::uint64_t{1} << (8U * element_bytes)) - 1);
}

}  // namespace refit::exec
