// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "refit/cluster.hpp"
#include "refit/plan.hpp"
#include "refit/traffic.hpp"
#include "refit/workload.hpp"

namespace refit {

/// All that one rank sends another, over all stages.
struct PairBytes {
    RankId source;
    RankId destination;
    std::uint64_t bytes = 0;
    std::uint64_t hops = 0;  ///< In how many hops.
    bool is_network = false;
    bool operator==(const PairBytes&) const = default;
};

/// How the tensors of one class travel.
struct ClassMoves {
    std::string name;
    std::uint64_t tensors = 0;
    Bytes bytes;             ///< Each tensor once.
    Bytes delivered;         ///< Sum of all destination boxes.
    Bytes point_to_point;    ///< Over all hops of transfers and relays.
    bool is_gathered = false;  ///< By collectives among trainers, and broadcast.
    bool operator==(const ClassMoves&) const = default;
};

/// A plan in sums. Collectives count as the hops of their rings.
struct PlanSummary {
    std::vector<PortBytes> ranks;   ///< By rank.
    std::vector<PortBytes> domains; ///< By NVLink domain: sums over its ranks.
    std::vector<PairBytes> pairs;   ///< Most bytes first, then by source and destination.
    std::vector<ClassMoves> classes;
    std::uint64_t hops = 0;
    std::uint64_t messages = 0;     ///< That are relayed, or else transfers.
};

[[nodiscard]] PlanSummary summarise(const Plan& plan, const Workload& workload, const Cluster& cluster);

}  // namespace refit
