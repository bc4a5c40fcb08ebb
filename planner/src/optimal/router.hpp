// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "refit/fabric.hpp"
#include "refit/plan.hpp"
#include "refit/slices.hpp"

namespace refit {

/// No message is smaller unless a slice is: a shorter one is not worth its posting. Unit: byte.
inline constexpr std::uint64_t kSmallestMessage = std::uint64_t{1} << 19U;

/// No message is larger unless a row is: ranks that pass it on have to stage it. Unit: byte.
inline constexpr std::uint64_t kLargestMessage = std::uint64_t{1} << 29U;

/// What choices have to keep within.
struct RouteLimits {
    double budget = 0.0;   ///< Of every port, where that can be. Unit: second.
    double largest = 1.0;  ///< Share of a port's time that one message may take.
    double finest = 0.02;  ///< Share that a message's copies may take where a slice is cut to be spread.
};

/// Messages and hops by greedy choices. Pre: budget > 0 unless there is nothing to move. Source: docs/optimal.md.
[[nodiscard]] RelayTable route_within(const SliceTable& slices, const Fabric& fabric, const RouteLimits& limits);

}  // namespace refit
