// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "refit/estimate.hpp"
#include "refit/loads.hpp"
#include "refit/report.hpp"

namespace refit {

/// Every constant of the engine that moves the plan's time, the one that moves it most over its interval
/// first.
[[nodiscard]] std::vector<Sensitivity> sensitivities(const PlanLoads& loads, const Setting& setting);

}  // namespace refit
