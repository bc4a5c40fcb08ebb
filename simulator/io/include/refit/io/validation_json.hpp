// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "refit/validate.hpp"

namespace refit::io {

/// What data/schema/validation.json describes. Errors and shares are fractions: 0.1 is 10 %.
[[nodiscard]] nlohmann::json to_json(const Validation& validation);

}  // namespace refit::io
