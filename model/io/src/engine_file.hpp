// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "refit/engine.hpp"
#include "refit/result.hpp"

namespace refit::io {

/// An engine (data/schema/engine.json). `origin` names the file in messages.
/// Errors: kInvalidInput, all at once, each with its place.
[[nodiscard]] Result<Engine> engine_from_json(const nlohmann::json& json, const std::string& origin);

}  // namespace refit::io
