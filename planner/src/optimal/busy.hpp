// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

namespace refit {

/// How long a port is busy with these bytes: endlessly where it is down. Unit: second.
[[nodiscard]] inline double seconds(double bytes, double rate) noexcept {
    return rate > 0.0 ? bytes / rate : (bytes > 0.0 ? std::numeric_limits<double>::infinity() : 0.0);
}

}  // namespace refit
