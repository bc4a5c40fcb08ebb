// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "refit/fabric.hpp"
#include "refit/plan.hpp"
#include "refit/slices.hpp"

namespace refit {

/// No message is smaller unless a slice is: a shorter one is not worth its posting. Unit: byte.
inline constexpr std::uint64_t kSmallestMessage = std::uint64_t{1} << 19U;

/// Messages and hops by greedy choices that keep every port within `budget` seconds where they can; `finest` is the share
/// of a port's time that one message may take. Pre: budget > 0 unless there is nothing to move. Source: docs/optimal.md.
[[nodiscard]] RelayTable route_within(const SliceTable& slices, const Fabric& fabric, double budget, double finest);

}  // namespace refit
