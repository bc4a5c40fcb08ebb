// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "refit/facts.hpp"

namespace refit {

/// The facts of a small model of the same shape: as many layers, heads and experts, but every width (hidden
/// size, head sizes, expert width, vocabulary …) divided by `divisor`, rounded down to at least 1. Its
/// tensors are cut as the large model's are, so that its plans can be run where the large model has no room.
/// Range: divisor >= 1.
[[nodiscard]] Facts shrunk(const Facts& facts, std::uint32_t divisor);

}  // namespace refit
