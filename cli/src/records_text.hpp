// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "refit/report.hpp"

namespace refit::cli {

/// One line a method, RFC 4180, units in the header.
[[nodiscard]] std::string report_csv(const Report& report);
/// The same as a Markdown table.
[[nodiscard]] std::string report_markdown(const Report& report);

}  // namespace refit::cli
