// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "refit/flow_network.hpp"

namespace refit::testing_support {

/// When flows start and end, found the slow way: at each event every rate is found anew by raising all flows
/// together until a link is full or a cap is met. Shares no code with the simulator.
struct OracleRun {
    std::vector<double> start;
    std::vector<double> end;
};

/// Nothing where a flow never ends. Pre: the network has no faults.
[[nodiscard]] std::optional<OracleRun> run_slowly(const FlowNetwork& network);

}  // namespace refit::testing_support
