// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "refit/flow_network.hpp"
#include "refit/flow_run.hpp"

namespace refit::flow {

/// A smaller network with one flow for each class of flows that are alike, and one link for each class of
/// links.
///
/// Flows are alike when all their numbers are, and they use alike links alike and follow alike flows; links
/// are alike when their rates and changes are, and alike flows use them. Alike flows and links are in the
/// same state at all times, so that the times of the small network are those of the large one.
struct Quotient {
    FlowNetwork network;
    std::vector<std::uint32_t> flow_class;  ///< By flow.
    std::vector<std::uint32_t> link_class;  ///< By link.
};

/// Nothing where too few flows are alike to gain by it, or where `is_cancelled` said so. Pre: no faults.
/// Cost: some passes over all uses of links; one where hardly any flows are alike.
[[nodiscard]] std::optional<Quotient> find_quotient(const FlowNetwork& network,
                                                    const std::function<bool()>& is_cancelled);

/// The run of all flows from that of their classes.
[[nodiscard]] FlowRun expand(const FlowNetwork& network, const Quotient& quotient, const FlowRun& run);

}  // namespace refit::flow
