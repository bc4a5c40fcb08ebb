// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "refit/result.hpp"

namespace refit::io {

/// A list of {"code", "message", "where", "nearest": {"field", "value", "note"} or null}.
[[nodiscard]] nlohmann::json to_json(const Faults& faults);

}  // namespace refit::io
