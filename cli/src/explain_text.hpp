// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "refit/report.hpp"
#include "refit/scenario.hpp"

namespace refit::cli {

/// Every term of each method with its formula and values, the bounds, and each constant with interval and source.
[[nodiscard]] std::string explain_text(const Report& report, const Scenario& scenario);

}  // namespace refit::cli
