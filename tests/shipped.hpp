// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

#include "refit/io/library.hpp"

namespace refit {

/// The project's data folder.
[[nodiscard]] inline io::Library shipped_library() { return io::Library::open(REFIT_DATA_DIR).value(); }

/// A shipped scenario with some fields changed as flags would. Throws with the first fault where it does not resolve.
[[nodiscard]] inline Scenario shipped_scenario(
    const std::string& name, std::initializer_list<std::pair<std::string, std::string>> changes = {}) {
    const auto library = shipped_library();
    auto draft = library.scenario(name).value();
    for (const auto& [field, value] : changes) {
        draft.apply({field, value, ""});
    }
    auto scenario = io::resolve(draft, library);
    if (!scenario) {
        throw std::runtime_error{scenario.error().front().message};
    }
    return std::move(*scenario);
}

}  // namespace refit
