// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "refit/cluster.hpp"
#include "refit/nic_routes.hpp"

namespace refit {

/// The members of a group by domain, in the order in which its ring meets them: the root's domain first.
[[nodiscard]] inline std::vector<std::vector<RankId>> split_by_domain(const Cluster& cluster,
                                                                      const std::vector<RankId>& group) {
    std::vector<std::vector<RankId>> domains;
    DomainId highest;
    for (const auto rank : group) {
        const auto domain = cluster.domain_of(rank);
        // Groups mostly ascend, so a domain above all others is new; a ring that returns to one finds it further back.
        if (domains.empty() || domain > highest) {
            highest = domain;
            domains.push_back({rank});
            continue;
        }
        const auto found = std::find_if(domains.rbegin(), domains.rend(), [&](const auto& members) {
            return cluster.domain_of(members.front()) == domain;
        });
        (found == domains.rend() ? domains.emplace_back() : *found).push_back(rank);
    }
    return domains;
}

[[nodiscard]] inline std::size_t fewest_members(const std::vector<std::vector<RankId>>& domains) {
    return std::ranges::min_element(domains, {}, &std::vector<RankId>::size)->size();
}

/// By domain: places of the members by whose NICs a ring may enter and leave it.
using RingGates = std::vector<std::vector<std::size_t>>;

/// All members whose NICs work; where rails do not meet, of each rail as many as the ring has in every domain, so that
/// each channel stays on its rail. All members where none is left: others' NICs stand in.
/// Source: NCCL takes the fewest channels of any rank, and stays on a rail where NICs cannot cross (docs/cost_model.md).
[[nodiscard]] RingGates ring_gates(const std::vector<std::vector<RankId>>& domains, const NicRoutes& routes);

/// Channels of a ring through these gates: each on a NIC of its own in every domain.
[[nodiscard]] inline std::size_t fewest_gates(const RingGates& gates) {
    return std::ranges::min_element(gates, {}, &std::vector<std::size_t>::size)->size();
}

}  // namespace refit
