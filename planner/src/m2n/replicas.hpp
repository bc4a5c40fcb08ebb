// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "refit/m2n.hpp"

namespace refit::m2n {

/// NVLink domains of the destination ranks.
struct Domains {
    std::uint32_t size = 1;
    std::uint32_t anchor = 0;  ///< First rank of domain 0.

    [[nodiscard]] std::uint32_t of(RankId rank) const noexcept { return (rank.index() - anchor) / size; }
    /// Place within the domain; a rail joins equal places.
    [[nodiscard]] std::uint32_t rail_of(RankId rank) const noexcept { return (rank.index() - anchor) % size; }
};

/// Injection into the first `domains` domains only; rings step on by as many.
struct Stride {
    std::uint32_t domains = 1;  ///< That source ranks write to.
    std::uint32_t domains_per_replica = 1;
};

/// Which source replica feeds which destination replicas.
/// Source: NCCL M2N 0.2, reshard_loadbalance.cc.
class ReplicaMatch {
public:
    /// Equal shares of the destination replicas; of more sources, one a destination replica.
    [[nodiscard]] static ReplicaMatch uniform(std::uint32_t sources, std::uint32_t destinations);
    /// One source replica for all replicas in a domain. M2N looks at the ranks of shard 0 alone.
    [[nodiscard]] static ReplicaMatch by_domain(std::uint32_t sources,
                                                const M2nSide& destination,
                                                Domains domains);
    /// As by_domain, but only the first domains are written to.
    [[nodiscard]] static ReplicaMatch strided(std::uint32_t sources,
                                              const M2nSide& destination,
                                              Domains domains,
                                              Stride stride);

    /// Destination replicas that the source replica takes part in feeding; empty where it is idle. Where
    /// strided, a replica may lie in several ranges.
    [[nodiscard]] M2nRange targets_of(std::uint32_t source) const { return targets_[source]; }
    [[nodiscard]] std::uint32_t source_of(std::uint32_t destination) const { return sources_[destination]; }

private:
    ReplicaMatch(std::uint32_t sources, std::vector<std::uint32_t> source_of);

    std::vector<M2nRange> targets_;       ///< By source replica.
    std::vector<std::uint32_t> sources_;  ///< By destination replica.
};

/// Part `index` of `count` items dealt out in neighbouring, nearly equal parts: the first ones have one more.
[[nodiscard]] constexpr M2nRange even_part(std::uint32_t count,
                                           std::uint32_t parts,
                                           std::uint32_t index) noexcept {
    const auto begin = [&](std::uint32_t part) {
        return part * (count / parts) + (part < count % parts ? part : count % parts);
    };
    return {begin(index), begin(index + 1)};
}

/// Which part of even_part holds `item`.
[[nodiscard]] constexpr std::uint32_t even_part_of(std::uint32_t count,
                                                   std::uint32_t parts,
                                                   std::uint32_t item) noexcept {
    const auto least = count / parts;
    const auto in_larger = count % parts * (least + 1);
    return item < in_larger ? item / (least + 1) : count % parts + (item - in_larger) / least;
}

}  // namespace refit::m2n
