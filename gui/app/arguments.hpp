// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "refit/gui/views.hpp"

namespace refit::gui {

/// What the command line of refit-gui asks for.
struct Arguments {
    std::string target;
    std::vector<std::string> settings;  ///< "FIELD=VALUE".
    std::optional<View> view;           ///< To write to `output`, without a window.
    std::string output;
    std::string shot;                   ///< A picture of the whole window, after which it closes.
    std::string filter;
    std::optional<Method> method;
    std::optional<Method> against;
    std::optional<Grouping> grouping;
    std::string measured;
    std::optional<Theme> theme;
    double width = 1280.0;
    double height = 800.0;
    double scale = 1.0;
    bool shows_help = false;
    bool shows_version = false;
};

[[nodiscard]] std::string usage();

/// Errors: kUsage, with the nearest option.
[[nodiscard]] Result<Arguments> parse_arguments(const std::vector<std::string>& words);

}  // namespace refit::gui
