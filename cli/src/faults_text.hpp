// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "refit/io/library.hpp"
#include "refit/io/scenario_draft.hpp"
#include "refit/result.hpp"

namespace refit::cli {

/// All faults with what to try, at most 100 columns wide. `command` is how the user asked, for example
/// "./run compare deepseek-v3-h100"; `draft` may be null where there is no scenario yet.
[[nodiscard]] std::string describe_faults(const Faults& faults, const std::string& command, bool has_color,
                                          const io::ScenarioDraft* draft, const io::Library* library);

/// "--train tp2.pp16.ep16", or "--set placement.gpus_used_per_domain=8" for a field without an option of its own.
[[nodiscard]] std::string flag_for(const Suggestion& suggestion);

/// Breaks at spaces so that no line passes `width` columns. The first line begins at column `indent`, where the caller
/// has written something already; the others are indented to it.
[[nodiscard]] std::string wrap(const std::string& text, std::size_t width, std::size_t indent);

}  // namespace refit::cli
