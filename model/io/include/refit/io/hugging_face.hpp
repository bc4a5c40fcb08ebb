// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "refit/facts.hpp"
#include "refit/result.hpp"

namespace refit::io {

/// Reads the facts of a Hugging Face `config.json`, or of a file of data/models, which adds keys that begin with "_".
/// Errors: those of read_json; kInvalidInput where the file holds no JSON object.
[[nodiscard]] Result<Facts> read_config(const std::filesystem::path& file);

}  // namespace refit::io
