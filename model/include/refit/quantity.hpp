// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "refit/result.hpp"
#include "refit/units.hpp"

namespace refit {

// Texts are a number, optional spaces and a unit, all in one letter case: "400Gbit/s", "900 GB/s", "64MiB".
// The number is decimal with a point, whatever the locale; prefixes are k M G T P (1000) and Ki Mi Gi Ti Pi
// (1024). Errors of all three readers: kInvalidInput with one of the rules
//   unit-missing   a bare number or a bare prefix
//   unit-case      a known unit but for its letter case, for example "gb/s", which may mean bits or bytes
//   unit-unknown   any other unit, or text behind the unit
//   number-syntax  no number, a comma, a sign, or spaces within the number
//   number-range   zero, negative, not finite, too large or too small
// Each message quotes the text, and `nearest` (field "") holds a text that the same reader accepts.

/// Reads a data rate in one direction: "400Gbit/s", "400Gb/s", "50GB/s", "46.6GiB/s", "1.45TB/s".
/// Unit: B/s, bit/s or b/s with a prefix. Range: above zero and finite.
[[nodiscard]] Result<Bandwidth> parse_bandwidth(std::string_view text);

/// Reads a length of time: "120s", "2us", "0.33ms", "1.5min", "27ns".
/// Unit: ns, us, ms, s, min or h. Range: above zero and finite.
[[nodiscard]] Result<Seconds> parse_duration(std::string_view text);

/// Reads an amount of data: "64MiB", "1.7GB", "512B"; a fraction is rounded to the nearest byte.
/// Unit: B with a prefix. Range: [1, 2^64), exact where the number is whole.
[[nodiscard]] Result<Bytes> parse_bytes(std::string_view text);

/// "1.342 TB", "39.2 GB", "235 MB", "512 B": decimal units, four significant digits below ten and else three,
/// without trailing zeros.
[[nodiscard]] std::string format_bytes(Bytes size);

/// "14.6 s", "0.84 s", "5.2 ms", "27 us": three significant digits without trailing zeros; seconds from 0.1 s
/// on.
[[nodiscard]] std::string format_seconds(Seconds time);

/// "50 GB/s", "450 GB/s", "1.45 TB/s": decimal units, three significant digits without trailing zeros.
[[nodiscard]] std::string format_bandwidth(Bandwidth rate);

}  // namespace refit
