// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace refit::io {

/// A key that an object of a JSON text has a second time.
struct RepeatedKey {
    std::string pointer;     ///< "/train/gpus".
    std::size_t offset = 0;  ///< Of the repetition's quote.
    bool operator==(const RepeatedKey&) const = default;
};

/// All of them, in the order of the text. Pre: the text is valid JSON.
[[nodiscard]] std::vector<RepeatedKey> repeated_keys(std::string_view text);

}  // namespace refit::io
