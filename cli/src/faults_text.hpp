// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "refit/io/library.hpp"
#include "refit/io/scenario_draft.hpp"
#include "refit/result.hpp"
#include "refit/wrap.hpp"

namespace refit::cli {

/// How the user asked, so that a cure can be given as a command.
struct Asked {
    std::string command;                                        ///< "./run compare deepseek-v3-h100", without fields.
    std::vector<std::pair<std::string, std::string>> fields;    ///< Scenario fields set by flags, and their values.
    const io::ScenarioDraft* draft = nullptr;                   ///< Null where there is no scenario yet.
    const io::Library* library = nullptr;
};

/// All faults with what to try, at most 100 columns wide.
[[nodiscard]] std::string describe_faults(const Faults& faults, const Asked& asked, bool has_color);

/// Each warning with its cure, at most 100 columns wide. Empty for none.
[[nodiscard]] std::string describe_warnings(const Faults& warnings);

/// "--train tp2.pp16.ep16", or "--set placement.gpus_used_per_domain=8" for a field without an option of its own.
[[nodiscard]] std::string flag_for(const Suggestion& suggestion);

}  // namespace refit::cli
