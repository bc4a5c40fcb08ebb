// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
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

/// Bytes through the uplinks of a pod.
struct PodBytes {
    std::uint64_t up = 0;
    std::uint64_t down = 0;
    bool operator==(const PodBytes&) const = default;
};

/// Bytes from one rank to another. A hop inside a domain goes over NVLink.
struct Hop {
    RankId source;
    RankId destination;
    std::uint64_t bytes = 0;
    bool is_network = false;
    bool operator==(const Hop&) const = default;
};

using HopVisitor = std::function<void(const Hop&)>;

/// Every hop of a stage, transfers first; collectives as the hops of their rings. Where a hop needs other GPUs' NICs
/// (NicRoutes), the parts of its way.
void visit_hops(const Plan& plan, const PlanStage& stage, const Cluster& cluster, const HopVisitor& visit);

/// The first hop between domains that no NIC can carry; none where a plan can run.
[[nodiscard]] std::optional<Hop> unreachable_hop(const Plan& plan, const Cluster& cluster);

/// Bytes through the ports of every rank, by rank, and through the uplinks of pods, where they may limit.
/// Invariant: over all ranks, out equals in on either kind of link.
class Traffic {
public:
    explicit Traffic(std::uint32_t ranks) : ports_(ranks) {}
    /// Without traffic, for the ranks and pods of a job.
    explicit Traffic(const Cluster& cluster);

    [[nodiscard]] const std::vector<PortBytes>& ports() const& noexcept { return ports_; }
    const std::vector<PortBytes>& ports() const&& = delete;  // would dangle
    /// By pod; empty where no uplink limits.
    [[nodiscard]] const std::vector<PodBytes>& pods() const& noexcept { return pods_; }
    const std::vector<PodBytes>& pods() const&& = delete;
    [[nodiscard]] std::uint64_t network_bytes() const noexcept;
    [[nodiscard]] std::uint64_t nvlink_bytes() const noexcept;
    void add(const Traffic& other);
    void add_hop(const Hop& hop);

    /// Adds a ring collective of one group, each of its hops once.
    void add_ring(const Cluster& cluster, const std::vector<RankId>& group, CollectiveRole role, std::uint64_t bytes);

private:
    std::vector<PortBytes> ports_;
    std::vector<PodBytes> pods_;
    std::vector<std::uint32_t> pod_of_;  ///< By rank, where there are pods.
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
