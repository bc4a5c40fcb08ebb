// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "refit/cluster.hpp"
#include "refit/plan.hpp"
#include "refit/workload.hpp"

namespace refit {

/// Bytes through the ports of one rank.
struct PortBytes {
    std::uint64_t nic_out = 0;
    std::uint64_t nic_in = 0;
    std::uint64_t nvlink_out = 0;
    std::uint64_t nvlink_in = 0;
    bool operator==(const PortBytes&) const = default;
};

/// Bytes through the ports of every rank, by rank. Invariant: over all ranks, out equals in on either kind of link.
class Traffic {
public:
    explicit Traffic(std::uint32_t ranks) : ports_(ranks) {}

    [[nodiscard]] const std::vector<PortBytes>& ports() const& noexcept { return ports_; }
    const std::vector<PortBytes>& ports() const&& = delete;  // would dangle
    [[nodiscard]] std::uint64_t network_bytes() const noexcept;
    [[nodiscard]] std::uint64_t nvlink_bytes() const noexcept;
    void add(const Traffic& other);
    /// Adds one hop; a hop inside a domain goes over NVLink, and one from a rank to itself over nothing.
    void add_hop(const Cluster& cluster, RankId source, RankId destination, std::uint64_t bytes);

    /// Adds a ring collective of one group, each of its hops once. The ring enters each domain once, at the root's
    /// first. Where it crosses domains it runs as several channels, at most one a member of the smallest domain part,
    /// each on a NIC of its own (replica collectives: one channel).
    /// Source: NCCL's ring channels, one a NIC; docs/cost_model.md.
    void add_ring(const Cluster& cluster, const std::vector<RankId>& group, CollectiveRole role, std::uint64_t bytes);

private:
    std::vector<PortBytes> ports_;
};

/// Traffic of the point-to-point transfers of a stage.
[[nodiscard]] Traffic transfer_traffic(const Plan& plan, const PlanStage& stage, const Cluster& cluster);
/// Traffic of its collectives.
[[nodiscard]] Traffic collective_traffic(const Plan& plan, const PlanStage& stage, const Cluster& cluster);
/// Traffic of the whole plan.
[[nodiscard]] Traffic traffic(const Plan& plan, const Cluster& cluster);

/// Logical bytes: gather-broadcast moves every parameter twice, gathered and broadcast; every other method moves what
/// the generators want.
[[nodiscard]] Bytes logical_bytes(const Plan& plan, const Workload& workload);

}  // namespace refit
