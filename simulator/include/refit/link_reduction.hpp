// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "refit/flow_network.hpp"

namespace refit {

/// A network with fewer links whose flows have the same rates at all times.
struct ReducedNetwork {
    FlowNetwork network;              ///< The same flows, by the same numbers.
    std::vector<std::uint32_t> kept;  ///< By link of it: the number that it has in the whole network.
};

/// Leaves out links that never limit: those of which every flow takes, for each byte per second of the link,
/// at most what it takes of one other link. The rates that links allow are then the same without them, and so
/// is the max-min share. Links that change are kept. Cost: in distinct ways through the network, squared in
/// distinct links.
[[nodiscard]] ReducedNetwork without_idle_links(const FlowNetwork& network);

}  // namespace refit
