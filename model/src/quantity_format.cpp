// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "refit/quantity.hpp"

namespace refit {
namespace {

struct Step {
    std::string_view name;
    double factor;
};

/// The shortest of the fixed and %g notations with `digits` significant digits, whatever the locale.
std::string rounded_text(double value, int digits) {
    std::array<char, 400> buffer{};
    const bool is_long = std::abs(value) >= std::pow(10.0, digits) - 0.5;
    const auto format = is_long ? std::chars_format::fixed : std::chars_format::general;
    const auto end =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, is_long ? 0 : digits);
    return {buffer.data(), end.ptr};
}

/// `value` in the largest of `units` (ascending) of which it is at least one after rounding to three digits.
std::string in_units(double value, std::span<const Step> units, int digits_below_ten) {
    std::size_t chosen = 0;
    while (chosen + 1 < units.size() && std::abs(value) >= 0.9995 * units[chosen + 1].factor) {
        ++chosen;
    }
    const double mantissa = value / units[chosen].factor;
    const bool is_below_ten = std::abs(mantissa) >= 1.0 && std::abs(mantissa) < 9.9995;
    const int digits = is_below_ten ? digits_below_ten : 3;
    return rounded_text(mantissa, digits) + " " + std::string{units[chosen].name};
}

}  // namespace

std::string format_bytes(Bytes size) {
    constexpr std::array<Step, 6> kUnits{
        {{"B", 1.0}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}}};
    return in_units(size.as_double(), kUnits, 4);
}

std::string format_seconds(Seconds time) {
    constexpr std::array<Step, 3> kUnits{{{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}}};
    const double size = std::abs(time.value());
    if (size == 0.0 || !(size < 0.09995)) {
        return rounded_text(time.value(), 3) + " s";
    }
    return in_units(time.value(), kUnits, 3);
}

std::string format_bandwidth(Bandwidth rate) {
    constexpr std::array<Step, 6> kUnits{
        {{"B/s", 1.0}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}, {"PB/s", 1e15}}};
    return in_units(rate.bytes_per_second(), kUnits, 3);
}

}  // namespace refit
