// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "refit/flow_network.hpp"

namespace refit {

/// A network with fewer links whose flows have the same rates at all times.
struct ReducedNetwork {
    FlowNetwork network;  ///< The same flows, by the same numbers.
    std::vector<std::uint32_t>
        kept;  ///< By link of it: the first link of the whole network that it stands for.
    /// By use of its ways: the link of the whole network that is used.
    std::vector<std::uint32_t> used;

    /// The link of the whole network that a flow takes by this one. Pre: the flow uses it.
    [[nodiscard]] std::uint32_t link_in_whole(std::uint32_t flow, std::uint32_t link) const;
};

/// Leaves out links that never limit, and flows' uses of links that do not limit them: those of which every
/// flow that may run meanwhile takes, for each byte per second of the link, at most what it takes of one
/// other link that the flow uses. The rates that links allow are then the same without them, and so is the
/// max-min share. Links of one rate stand for each other where at most one at a time carries more than the
/// flows they have in common. Links that change are kept.
///
/// `lanes`: by flow, or none. Flows of one lane that follow each other never run at the same time; of unlike
/// lanes they may, whatever their order. Pre: the network has no faults. Cost: in distinct ways through the
/// network, squared in distinct links.
[[nodiscard]] ReducedNetwork without_idle_links(const FlowNetwork& network,
                                                std::span<const std::uint32_t> lanes = {});

}  // namespace refit
