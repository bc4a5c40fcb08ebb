// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "refit/m2n_settings.hpp"
#include "refit/m2n_tensor.hpp"
#include "refit/result.hpp"

namespace refit {

/// The elements that a source shard and a destination shard share, as M2N copies them.
/// Invariant: bytes == run_bytes * runs.
struct M2nPair {
    std::uint32_t source_shard = 0;
    std::uint32_t destination_shard = 0;
    std::uint64_t bytes = 0;
    std::uint64_t run_bytes = 0;  ///< Contiguous on both sides, as M2N sees it.
    std::uint64_t runs = 0;
    bool operator==(const M2nPair&) const = default;
};

/// A source rank sends a pair to a destination rank.
struct M2nInjection {
    RankId source;
    RankId destination;
    std::uint32_t pair = 0;  ///< Index into M2nPlan::pairs.
    bool operator==(const M2nInjection&) const = default;
};

/// Entries of a list of the plan: `begin` up to, not including, `end`.
struct M2nRange {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    bool operator==(const M2nRange&) const = default;
    [[nodiscard]] std::uint32_t size() const noexcept { return end - begin; }
};

/// What one destination rank does.
struct M2nDestination {
    RankId rank;
    std::uint32_t shard = 0;
    std::uint32_t replica = 0;
    std::uint32_t domain = 0;          ///< NVLink domain, as the path counts them.
    bool is_direct = false;            ///< Sources write to it; else, if it waits for any, the ring does.
    std::uint32_t source_replica = 0;  ///< Which source replica feeds it.
    M2nRange sources;                  ///< Pairs that it waits for itself, and hands on.
    std::optional<RankId> ring_next;   ///< Gets what this rank waited for, in another domain.
    M2nRange domain_replicas;  ///< Replicas of its shard in its domain: they share what each waited for.
    bool operator==(const M2nDestination&) const = default;
};

/// Sums over a plan. Unit: byte unless said.
struct M2nTotals {
    std::uint32_t active_senders = 0;  ///< Source ranks that send. Unit: ranks.
    std::uint32_t source_ranks = 0;    ///< Unit: ranks.
    std::uint64_t inject_bytes = 0;    ///< All injections.
    std::uint64_t ring_bytes = 0;      ///< All hops of the rings.
    std::uint64_t fanout_bytes = 0;    ///< All stores into other ranks of a domain.
    std::uint64_t max_rank_inject_tx = 0;
    std::uint64_t max_rank_inject_rx = 0;
    std::uint64_t max_rank_network_tx = 0;  ///< Injection and ring; none of it on the lsa path.
    std::uint64_t max_rank_network_rx = 0;
    std::uint64_t max_rank_ring_tx = 0;
    std::uint64_t max_rank_fanout_tx = 0;
    RankId busiest;  ///< The first rank that sends the most, over network and NVLink together.
    std::uint64_t busiest_tx = 0;
    bool operator==(const M2nTotals&) const = default;
};

/// Who sends what to whom in one call, as NCCL M2N 0.2 plans it itself on every rank.
struct M2nPlan {
    M2nPath path = M2nPath::kSplit;  ///< Taken; the one asked for may have been closed to the call.
    M2nBalance balance = M2nBalance::kUniform;  ///< As resolved, never kAdaptive.
    M2nSide source;
    M2nSide destination;
    std::vector<M2nPair> pairs;                ///< By destination shard, then source shard.
    std::vector<M2nInjection> injections;      ///< By source rank, then destination shard and replica.
    std::vector<M2nDestination> destinations;  ///< By rank.
    M2nTotals totals;
    bool operator==(const M2nPlan&) const = default;

    /// Source ranks that the entry waits for, by rank.
    [[nodiscard]] std::vector<RankId> sources_of(const M2nDestination& entry) const;
    /// Ranks to which it stores what it waited for, by rank.
    [[nodiscard]] std::vector<RankId> followers_of(const M2nDestination& entry) const;
    /// Bytes that it waits for itself.
    [[nodiscard]] std::uint64_t awaited_bytes(const M2nDestination& entry) const;
};

/// Errors: all faults of the call (m2n_limits.hpp); where there are none, a kInfeasible fault for each limit
/// that it exceeds. Cost: in pairs of overlapping shards plus destination ranks. Source: NCCL M2N 0.2, the
/// host planner, as described in docs/m2n.md.
[[nodiscard]] Result<M2nPlan> m2n_plan(const M2nCall& call, const M2nSettings& settings);

}  // namespace refit
