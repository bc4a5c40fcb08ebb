// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace refit {

/// The word as a POSIX shell takes it: as it is where that is plain, else in single quotes.
[[nodiscard]] std::string shell_word(const std::string& word);

}  // namespace refit
