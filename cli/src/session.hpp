// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "options.hpp"
#include "refit/io/library.hpp"
#include "refit/io/scenario_draft.hpp"

namespace refit::cli {

/// The data folder: REFIT_DATA, else the one installed beside the program, else that of the source tree.
[[nodiscard]] Result<io::Library> open_library();

/// Scenario file, environment and flags, in rising precedence. Appends what is wrong with the flags to `faults`.
[[nodiscard]] Result<io::ScenarioDraft> collect_draft(const Options& options, const io::Library& library, Faults& faults);

/// What to say where neither scenario nor flags tell which refit is meant, with a command to begin with.
[[nodiscard]] std::string which_refit(const Options& options);

/// Prints the faults to stderr and returns their exit code. With a draft, cures are given as commands.
int refuse(const Faults& faults, const Options& options, const io::ScenarioDraft* draft = nullptr,
           const io::Library* library = nullptr);

/// The faults as `refuse` prints them.
[[nodiscard]] std::string refusal_text(const Faults& faults, const Options& options, const io::ScenarioDraft* draft,
                                       const io::Library* library, bool has_color);

/// Writes data to stdout, or to the file that -O names; returns the exit code.
int write_output(const std::string& text, const Options& options);

}  // namespace refit::cli
