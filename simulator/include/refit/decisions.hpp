// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "refit/decision.hpp"
#include "refit/validate.hpp"

namespace refit {

/// Every refit of one model between the same layouts on the same machines that was timed in two or more ways,
/// in the order of the rows. Pre: `rows` are those of `cases`.
[[nodiscard]] std::vector<Decision> decisions(std::span<const ValidationCase> cases,
                                              std::span<const ValidationRow> rows);

/// All such pairs among the modelled refits of each model. Pre: `rows` are those of `cases`.
[[nodiscard]] std::vector<FactorChange> factor_changes(std::span<const ValidationCase> cases,
                                                       std::span<const ValidationRow> rows);

}  // namespace refit
