// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "refit/plan.hpp"
#include "refit/result.hpp"
#include "refit/scenario.hpp"
#include "refit/workload.hpp"

namespace refit {

/// The plan of a method, or every reason why the engine cannot run it, each with the nearest setting that works.
/// Errors: kInfeasible.
[[nodiscard]] Result<Plan> make_plan(Method method, const Scenario& scenario, const Workload& workload);

}  // namespace refit
