// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "refit/report.hpp"
#include "refit/scenario.hpp"

namespace refit::io {

/// A report by schema `refit.report` 1.0 (data/schema/report.json). Units are in the keys; bytes are whole numbers.
[[nodiscard]] nlohmann::json to_json(const Report& report, const Scenario& scenario);

}  // namespace refit::io
