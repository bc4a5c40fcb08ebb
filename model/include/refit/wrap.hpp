// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace refit {

/// Breaks at spaces so that no line passes `width` columns, but where a word alone does. The first line
/// begins at column `indent`, where the caller has written something already; the others are indented to it.
[[nodiscard]] std::string wrap(const std::string& text, std::size_t width, std::size_t indent);

}  // namespace refit
