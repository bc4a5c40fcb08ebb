// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <QString>

namespace refit::gui {

/// UTF-8 as Qt keeps it.
[[nodiscard]] inline QString text(std::string_view value) {
    return QString::fromUtf8(value.data(), static_cast<qsizetype>(value.size()));
}

}  // namespace refit::gui
