// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "refit/cluster.hpp"
#include "refit/simulate.hpp"

namespace refit::cli {

/// Like lanes that are shown as one.
struct LaneGroup {
    std::string name;  ///< "stages 0-3, transfers".
    std::vector<std::uint32_t> lanes;
};

/// Lanes that did anything, like ones put together so that about `most` groups remain.
[[nodiscard]] std::vector<LaneGroup> fold_lanes(const Simulation& simulation, std::size_t most);

/// A row of characters for each group of lanes: how much of the time each part of the refit was busy. Where
/// there are few lanes, rows for the ports that carried most, by their rate. At most 100 columns. Pre: the
/// simulation kept its segments.
[[nodiscard]] std::string timeline_text(const Simulation& simulation, const Cluster& cluster);

}  // namespace refit::cli
