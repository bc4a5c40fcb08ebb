// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "refit/gui/answer.hpp"
#include "refit/gui/filter.hpp"
#include "refit/gui/theme.hpp"
#include "refit/gui/views.hpp"

namespace refit::gui {

/// What undo goes back over: the scenario, the methods, the filter, and what is pinned.
struct Edited {
    Question question;
    Filter filter;
    std::shared_ptr<const Answer> pinned;
    bool operator==(const Edited&) const = default;
};

/// How the window is liked; kept across restarts.
struct Tastes {
    std::optional<Theme> theme;  ///< Nothing: as the system.
    double text_scale = 1.0;     ///< Range: 0.7 to 2.
    bool has_reduced_motion = false;
    std::optional<View> beside;  ///< The second view; nothing: there is one.
};

}  // namespace refit::gui
