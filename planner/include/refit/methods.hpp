// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "refit/fabric.hpp"
#include "refit/plan.hpp"
#include "refit/result.hpp"
#include "refit/scenario.hpp"
#include "refit/slices.hpp"
#include "refit/workload.hpp"

namespace refit {

/// The plan of a method, or every reason why the engine cannot run it, each with the nearest setting that works.
/// Errors: kInfeasible.
[[nodiscard]] Result<Plan> make_plan(Method method, const Scenario& scenario, const Workload& workload);

/// The same where the workload's slices, by which `optimal` plans, are made already.
[[nodiscard]] Result<Plan> make_plan(Method method, const Scenario& scenario, const Workload& workload, const SliceTable& slices);

/// The same for distributions that no model's layout gave. Gather-broadcast then gathers each tensor on the first holders
/// of its shards, and broadcasts from trainer 0. Errors: kUnsupported for hybrid and m2n.
[[nodiscard]] Result<Plan> make_plan(Method method, const Cluster& cluster, const SideRates& rates, const Workload& workload);

}  // namespace refit
