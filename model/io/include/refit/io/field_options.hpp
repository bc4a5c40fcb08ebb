// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace refit::io {

/// An option of the command line that sets a scenario field.
struct FieldOption {
    const char* flag;
    const char* field;
    const char* placeholder;  ///< Of its value, in the help.
    const char* help;
};
[[nodiscard]] std::span<const FieldOption> field_options() noexcept;

/// How the command line sets the field, quoted for a shell: "--train tp4.pp8@32", "--nic trainer:17=down",
/// "--set step_time=120s".
[[nodiscard]] std::string flag_for(std::string_view field, std::string_view value);

}  // namespace refit::io
