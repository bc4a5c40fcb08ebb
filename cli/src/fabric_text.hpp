// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "refit/cluster.hpp"

namespace refit::cli {

/// "pods of 4 NVLink domains, 2:1 oversubscribed; rail-only; NICs down: trainer 17; slow: generator 5 at 25
/// GB/s"; empty where healthy NICs alone limit.
[[nodiscard]] std::string fabric_text(const Cluster& cluster);

}  // namespace refit::cli
