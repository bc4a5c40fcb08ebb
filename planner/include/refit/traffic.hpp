// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
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

/// Bytes from one rank to another. A hop inside a domain goes over NVLink.
struct Hop {
    RankId source;
    RankId destination;
    std::uint64_t bytes = 0;
    bool is_network = false;
    bool operator==(const Hop&) const = default;
};

using HopVisitor = std::function<void(const Hop&)>;

/// Every hop of a stage, transfers first; collectives as the hops of their rings.
void visit_hops(const Plan& plan, const PlanStage& stage, const Cluster& cluster, const HopVisitor& visit);

/// Bytes through the ports of every rank, by rank. Invariant: over all ranks, out equals in on either kind of link.
class Traffic {
public:
    explicit Traffic(std::uint32_t ranks) : ports_(ranks) {}

    [[nodiscard]] const std::vector<PortBytes>& ports() const& noexcept { return ports_; }
    const std::vector<PortBytes>& ports() const&& = delete;  // would dangle
    [[nodiscard]] std::uint64_t network_bytes() const noexcept;
    [[nodiscard]] std::uint64_t nvlink_bytes() const noexcept;
    void add(const Traffic& other);
    void add_hop(const Hop& hop);

    /// Adds a ring collective of one group, each of its hops once.
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
