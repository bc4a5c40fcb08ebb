// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "refit/cluster.hpp"
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

/// The GPUs of a job by their ports, in NVLink domains, on a network without bottleneck of its own.
/// Invariant: `domain_of` and `ports` have an entry a rank; every domain below `domains` has a member.
class Fabric {
public:
    /// Pre: equal lengths; domains are numbered from 0 without gaps.
    Fabric(std::vector<std::uint32_t> domain_of, std::vector<GpuPorts> ports);
    /// One port set a rank, alike within a side.
    Fabric(const Cluster& cluster, const SideRates& rates);

    [[nodiscard]] std::uint32_t ranks() const noexcept { return static_cast<std::uint32_t>(ports_.size()); }
    [[nodiscard]] std::uint32_t domains() const noexcept { return static_cast<std::uint32_t>(members_.size()); }
    [[nodiscard]] std::uint32_t domain_of(std::uint32_t rank) const noexcept { return domain_of_[rank]; }
    [[nodiscard]] const GpuPorts& ports(std::uint32_t rank) const noexcept { return ports_[rank]; }
    /// Ranks of a domain, ascending.
    [[nodiscard]] const std::vector<std::uint32_t>& members(std::uint32_t domain) const noexcept { return members_[domain]; }
    /// Sums over the members of a domain.
    [[nodiscard]] const GpuPorts& domain_ports(std::uint32_t domain) const noexcept { return domain_ports_[domain]; }

private:
    std::vector<std::uint32_t> domain_of_;
    std::vector<GpuPorts> ports_;
    std::vector<std::vector<std::uint32_t>> members_;
    std::vector<GpuPorts> domain_ports_;
};

}  // namespace refit
