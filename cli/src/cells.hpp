// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdio>
#include <string>

#include "refit/units.hpp"

namespace refit::cli {

/// printf for one number.
[[nodiscard]] inline std::string number_text(const char* format, double value) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, format, value);
    return buffer;
}

/// Seconds without a unit, as precise as is worth reading: "118", "14.6", "2.67", "0.043".
[[nodiscard]] inline std::string seconds_number(double seconds) {
    if (seconds >= 9.995) {
        return number_text(seconds >= 99.95 ? "%.0f" : "%.1f", seconds);
    }
    return number_text(seconds >= 0.0995 || seconds == 0.0 ? "%.2f" : "%.3f", seconds);
}
[[nodiscard]] inline std::string seconds_number(Seconds seconds) { return seconds_number(seconds.value()); }

/// "45,395".
[[nodiscard]] inline std::string grouped(std::uint64_t value) {
    auto text = std::to_string(value);
    for (auto i = static_cast<std::ptrdiff_t>(text.size()) - 3; i > 0; i -= 3) {
        text.insert(static_cast<std::size_t>(i), ",");
    }
    return text;
}

/// "97.6 %".
[[nodiscard]] inline std::string percent(double share) { return number_text("%.1f %%", share * 100.0); }

/// One decimal in the unit that suits: "151.6 TB", "6.8 GB".
[[nodiscard]] inline std::string size_cell(Bytes size) {
    auto value = size.as_double();
    for (const char* unit : {"B", "kB", "MB", "GB", "TB"}) {
        if (value < 999.95) {
            return number_text(unit[0] == 'B' ? "%.0f " : "%.1f ", value) + unit;
        }
        value /= 1000.0;
    }
    return number_text("%.2f PB", value);
}

[[nodiscard]] inline std::string left(std::string text, std::size_t width) {
    text.resize(std::max(width, text.size()), ' ');
    return text;
}
[[nodiscard]] inline std::string right(const std::string& text, std::size_t width) {
    return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

}  // namespace refit::cli
