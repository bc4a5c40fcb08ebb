// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>

#include "refit/io/scenario_draft.hpp"

namespace refit::fuzz {

/// Whether resolving the draft stays inside the data folder: paths in it would lead the fuzzer to other
/// files.
[[nodiscard]] inline bool names_no_path(const io::ScenarioDraft& draft) {
    return std::ranges::none_of(draft.fields(), [](const auto& entry) {
        const auto& text = entry.second.text;
        const bool is_path = text.find('/') != std::string::npos || text == "." || text == ".." ||
                             text.ends_with(".json") || text.ends_with(".yaml") || text.ends_with(".yml");
        return is_path &&
               (entry.first == "model" || entry.first.starts_with("system") || entry.first == "engine.name");
    });
}

}  // namespace refit::fuzz
