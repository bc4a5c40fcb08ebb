// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "refit/flow_network.hpp"

namespace refit::testing_support {

/// A flow list of tests/golden/flows. Throws where it cannot be read.
[[nodiscard]] FlowNetwork golden_network(const std::string& name);
/// When SimGrid 3.32 has its flows end, in their order. Unit: s.
[[nodiscard]] std::vector<double> golden_times(const std::string& name);

}  // namespace refit::testing_support
