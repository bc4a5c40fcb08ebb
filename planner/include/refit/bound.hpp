// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "refit/cluster.hpp"
#include "refit/units.hpp"
#include "refit/workload.hpp"

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

/// Which cut forbids a faster plan. Names as in docs/bounds.md.
enum class BoundKind : std::uint8_t {
    kDomainIngress,  ///< B1: every byte wanted in a domain without a holder enters it once.
    kPortIngress,    ///< B2: what a domain's generators want passes their NICs and NVLinks.
    kSourceEgress,   ///< B3: every byte leaves the domains that alone hold it once.
    kCopyVolume,     ///< B4: each receiving domain costs one copy on some NIC.
};

[[nodiscard]] std::string_view name_of(BoundKind kind) noexcept;

/// No plan can be faster than this.
struct Bound {
    Seconds time;
    BoundKind kind = BoundKind::kDomainIngress;
    std::string where;     ///< "generation domain 12".
    Bytes network_bytes;   ///< The least that must cross NICs: every byte once into each domain that wants it.
};

/// The largest of the cut bounds B1 to B4 for moving the whole workload. B3 is evaluated for each trainer domain, each
/// set of domains that alone hold a slice, and all trainer domains, with every NIC of those domains counted.
/// Source: docs/bounds.md.
[[nodiscard]] Bound lower_bound(const Workload& workload, const TrainLayout& train, const Cluster& cluster,
                                const SideRates& rates);

}  // namespace refit
