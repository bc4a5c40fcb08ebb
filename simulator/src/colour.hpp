// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace refit {

/// What colour refinement gives to members that it cannot tell apart so far.
using Colour = std::uint64_t;

/// One to one, so that sums of mixed colours tell multisets apart.
/// Source: the finaliser of splitmix64.
[[nodiscard]] constexpr Colour mixed(Colour value) noexcept {
    value += 0x9e3779b97f4a7c15ULL;
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27U)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31U);
}

}  // namespace refit
