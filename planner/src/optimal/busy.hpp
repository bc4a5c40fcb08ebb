// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

namespace refit {

/// How long a port is busy with these bytes: endlessly where it is down. Unit: second.
[[nodiscard]] inline double seconds(double bytes, double rate) noexcept {
    return rate > 0.0 ? bytes / rate : (bytes > 0.0 ? std::numeric_limits<double>::infinity() : 0.0);
}

/// What the ports of a GPU carry. Unit: byte.
struct PortLoad {
    double nic_out = 0.0;
    double nic_in = 0.0;
    double nvlink_out = 0.0;
    double nvlink_in = 0.0;
};

}  // namespace refit
