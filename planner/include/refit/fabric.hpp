// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "refit/cluster.hpp"
#include "refit/scenario.hpp"
#include "refit/units.hpp"

namespace refit {

/// Rates of the ports of one GPU, as a bound or a plan may use them.
struct PortRates {
    Bandwidth nic;
    Bandwidth nvlink;
};

/// Rates for each side of the job.
struct SideRates {
    PortRates train;
    PortRates generate;
};

/// Rates at efficiency `nic` and `nvlink` of the line rates; 1 and 1 for the line rates themselves.
[[nodiscard]] SideRates port_rates(const Cluster& cluster, double nic, double nvlink);

/// What one GPU can send and receive at once. Unit: bytes per second; 0 for a port that is down.
struct GpuPorts {
    double nic_out = 0.0;
    double nic_in = 0.0;
    double nvlink_out = 0.0;
    double nvlink_in = 0.0;
    bool operator==(const GpuPorts&) const = default;
};

/// What lies between the NICs, where it limits.
struct Spine {
    std::vector<std::uint32_t> pod_of;  ///< By domain: its leaf group. Empty: NICs alone limit.
    std::vector<double> up;             ///< By pod: what it can send to all others. Unit: bytes per second.
    std::vector<double> down;           ///< By pod: what it can receive from all others.
    /// NICs of one rail, by their place in the domain, reach only each other; 0: any reaches any.
    std::uint32_t rails = 0;

    [[nodiscard]] std::uint32_t pods() const noexcept { return static_cast<std::uint32_t>(up.size()); }
};

/// The GPUs of a job by their ports, in NVLink domains.
/// Invariant: `domain_of` and `ports` have an entry a rank; every domain below `domains` has a member.
class Fabric {
public:
    /// Pre: equal lengths; domains are numbered from 0 without gaps; the spine, if any, has a pod for each domain.
    Fabric(std::vector<std::uint32_t> domain_of, std::vector<GpuPorts> ports, Spine spine = {});
    /// Alike within a side, but for NICs that fall short; under the spine and on the rails of the cluster. A pod's uplinks
    /// are in proportion to the NICs of the job's GPUs in it, healthy ones.
    Fabric(const Cluster& cluster, const SideRates& rates);

    [[nodiscard]] std::uint32_t ranks() const noexcept { return static_cast<std::uint32_t>(ports_.size()); }
    [[nodiscard]] std::uint32_t domains() const noexcept { return static_cast<std::uint32_t>(members_.size()); }
    [[nodiscard]] std::uint32_t domain_of(std::uint32_t rank) const noexcept { return domain_of_[rank]; }
    [[nodiscard]] const GpuPorts& ports(std::uint32_t rank) const noexcept { return ports_[rank]; }
    [[nodiscard]] const Spine& spine() const noexcept { return spine_; }
    /// Pod of a domain; 0 where the network has no bottleneck of its own.
    [[nodiscard]] std::uint32_t pod_of(std::uint32_t domain) const noexcept {
        return spine_.pod_of.empty() ? 0 : spine_.pod_of[domain];
    }
    /// Whether two NICs reach each other.
    [[nodiscard]] bool is_connected(std::uint32_t a, std::uint32_t b) const noexcept {
        return spine_.rails == 0 || place_[a] % spine_.rails == place_[b] % spine_.rails;
    }
    /// Ranks of a domain, ascending.
    [[nodiscard]] const std::vector<std::uint32_t>& members(std::uint32_t domain) const noexcept { return members_[domain]; }
    /// Sums over the members of a domain.
    [[nodiscard]] const GpuPorts& domain_ports(std::uint32_t domain) const noexcept { return domain_ports_[domain]; }

private:
    std::vector<std::uint32_t> domain_of_;
    std::vector<GpuPorts> ports_;
    std::vector<std::vector<std::uint32_t>> members_;
    std::vector<GpuPorts> domain_ports_;
    std::vector<std::uint32_t> place_;  ///< By rank: its place among the members of its domain.
    Spine spine_;
};

/// The fabric of a job at efficiencies of the line rates; 1 and 1 for the line rates themselves.
[[nodiscard]] Fabric make_fabric(const Cluster& cluster, double nic, double nvlink);
/// At the rates that the scenario's engine reaches.
[[nodiscard]] Fabric make_fabric(const Scenario& scenario);

}  // namespace refit
