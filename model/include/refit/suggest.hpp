// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace refit {

/// The candidate with the fewest edits (insertions, deletions, substitutions, swaps of neighbours) from `text`,
/// letter case apart; the first of equals. Empty where there is no candidate.
[[nodiscard]] std::string nearest_name(std::string_view text, std::span<const std::string> candidates);

/// "a, b and c".
[[nodiscard]] std::string join_names(std::span<const std::string> names);

}  // namespace refit
