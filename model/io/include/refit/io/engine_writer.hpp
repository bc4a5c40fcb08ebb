// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "refit/engine.hpp"
#include "refit/result.hpp"

namespace refit::io {

/// The text of an engine file in the form of data/engines: `file` with the constants that differ from what it
/// says, and the correlations, replaced. Every unit stays, and what is not a constant. Errors: those of
/// reading the file.
[[nodiscard]] Result<std::string> engine_text(const std::filesystem::path& file,
                                              const EngineConstants& constants);

}  // namespace refit::io
