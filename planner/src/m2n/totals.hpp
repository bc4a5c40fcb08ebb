// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "refit/m2n.hpp"

namespace refit::m2n {

/// Sums over what the plan says. Errors: a sum of 2^64 bytes and more throws std::overflow_error.
[[nodiscard]] M2nTotals totals_of(const M2nPlan& plan);

}  // namespace refit::m2n
