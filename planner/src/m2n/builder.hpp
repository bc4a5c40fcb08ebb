// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "overlap.hpp"
#include "refit/m2n.hpp"
#include "replicas.hpp"

namespace refit::m2n {

/// Replicas of a destination shard in one domain, out of those that a source replica feeds.
struct DomainGroup {
    std::uint32_t domain;
    M2nRange replicas;
    std::uint32_t slots;  ///< Of the first domain's leaders that still hold apart what they received.
};

/// How injection, rings and fan-out are laid out.
struct Arrangement {
    Domains domains;
    std::optional<Stride> stride;
    ReplicaMatch match;
};

/// The groups of a shard that one source replica feeds, by ascending domain. Pre: `targets` is not empty.
[[nodiscard]] std::vector<DomainGroup> domain_groups(const M2nSide& destination,
                                                     std::uint32_t shard,
                                                     M2nRange targets,
                                                     const Arrangement& arrangement);

/// The group to which the ring goes on from groups[index]; none where it ends.
[[nodiscard]] std::optional<std::size_t> next_group(std::span<const DomainGroup> groups,
                                                    std::size_t index,
                                                    const Arrangement& arrangement);

/// Whether a hop of a ring would change rails, or join domains with too many replicas: the second
/// communicator of the split path does not take it. Source: NCCL M2N 0.2, reshard_prepare.cc.
[[nodiscard]] bool has_hop_off_rail(const M2nSide& source,
                                    const M2nSide& destination,
                                    const Arrangement& arrangement);

/// Fills pairs, injections and destinations of a plan whose sides are set: leaders of each domain, rings from
/// domain to domain, stores within. Source: NCCL M2N 0.2, reshard_prepare.cc.
void add_hierarchical(M2nPlan& plan, const ShardOverlap& overlap, const Arrangement& arrangement);

/// The same where every source rank writes to every replica that it feeds.
void add_flat(M2nPlan& plan, const ShardOverlap& overlap, const ReplicaMatch& match);

}  // namespace refit::m2n
