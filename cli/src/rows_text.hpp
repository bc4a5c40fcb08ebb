// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "options.hpp"

namespace refit::cli {

using Row = std::vector<std::string>;

/// Comma-separated values as RFC 4180 has them, but with single line feeds.
[[nodiscard]] std::string csv(const Row& header, std::span<const Row> rows);
/// A Markdown table.
[[nodiscard]] std::string markdown(const Row& header, std::span<const Row> rows);
/// One of the two. Pre: the format is kCsv or kMarkdown.
[[nodiscard]] std::string rows_text(Format format, const Row& header, std::span<const Row> rows);

}  // namespace refit::cli
