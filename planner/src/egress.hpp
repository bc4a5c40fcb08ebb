// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace refit {

/// Bytes that one or several of `nodes` have to send once, in whatever shares.
struct EgressGroup {
    std::vector<std::uint32_t> nodes;  ///< Ascending, not empty.
    double bytes = 0.0;
};

/// How nodes share what they must send so that the busiest is done soonest.
struct EgressShares {
    double seconds = 0.0;                  ///< Of the busiest.
    std::vector<std::uint32_t> cut;        ///< Nodes that have more to send than any others, ascending.
    std::vector<std::vector<double>> flow; ///< By group and position among its nodes. Unit: byte.
};

/// The least time in which nodes with these rates (bytes per second) can send all groups, which by the duality of flows
/// and cuts is the largest quotient, over all sets of nodes, of what only they hold and their rates.
/// Pre: each group has a node with a positive rate.
[[nodiscard]] EgressShares least_egress(const std::vector<EgressGroup>& groups, const std::vector<double>& rates);

}  // namespace refit
