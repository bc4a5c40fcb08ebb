// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "refit/result.hpp"
#include "refit/rules.hpp"

namespace refit::io {

/// Reads a rule set of schema `refit.rules`. Errors: those of read_json; kInvalidInput, all at once, for a rule without
/// number, id, fact, message or allowed values.
[[nodiscard]] Result<RuleSet> read_rules(const std::filesystem::path& file);

}  // namespace refit::io
