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

/// Lines of at most `width` columns, broken at spaces; each after the first begins with `indent`.
[[nodiscard]] std::string wrap(const std::string& text, std::size_t width, const std::string& indent);

}  // namespace refit::cli
