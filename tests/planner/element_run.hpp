// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "refit/cluster.hpp"
#include "refit/plan.hpp"
#include "refit/workload.hpp"

namespace refit::testing_support {

/// Runs a plan on arrays of elements, hop by hop, one tensor after the other. Empty where every generator
/// ends with each element that it wants, written once, and every sender had what it sent; else the first
/// thing that went wrong. Looks at elements only, not at numbers of bytes. Pre: all indices in the plan
/// exist.
[[nodiscard]] std::string run_elements(const Plan& plan, const Workload& workload, const Cluster& cluster);

}  // namespace refit::testing_support
