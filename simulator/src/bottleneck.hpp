// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "refit/cluster.hpp"
#include "refit/estimate.hpp"
#include "refit/loads.hpp"
#include "refit/report.hpp"

namespace refit {

/// The resource that is busy longest, over the whole refit.
[[nodiscard]] Bottleneck bottleneck_of(const PlanLoads& loads,
                                       const Setting& setting,
                                       const Estimate& estimate,
                                       const Cluster& cluster);

}  // namespace refit
