// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "refit/fabric.hpp"
#include "refit/slices.hpp"
#include "refit/units.hpp"

namespace refit {

/// Which cut forbids a faster plan. Names as in docs/bounds.md.
enum class BoundKind : std::uint8_t {
    kDomainIngress,  ///< B1: every byte wanted in a domain without a holder enters it once.
    kGpuIngress,     ///< B2: what a GPU wants passes its NIC and its NVLink.
    kLocalIngress,   ///< B2 where no NIC serves: what a GPU wants and only its own domain holds passes its NVLink.
    kPortIngress,    ///< B2 per domain: what a domain's GPUs want passes their NICs and NVLinks.
    kSourceEgress,   ///< B3: every byte leaves the domains that alone hold it once, over any NIC in them.
    kGpuEgress,      ///< B3 per GPU: every byte leaves the GPUs that alone hold it once, over their NICs and NVLinks.
    kLocalEgress,    ///< B3 where no NIC serves: what only one domain holds and wants leaves its holders over NVLink.
    kCopyVolume,     ///< B4: each receiving domain costs one copy on some NIC.
    kPodIngress,     ///< Every byte wanted in a pod without a holder enters it once.
    kPodEgress,      ///< Every byte leaves the pods that alone hold it once.
    kPodVolume,      ///< Each receiving pod costs one copy on some uplink.
};

[[nodiscard]] std::string_view name_of(BoundKind kind) noexcept;

/// No plan can be faster than this.
struct Bound {
    Seconds time;
    BoundKind kind = BoundKind::kDomainIngress;
    std::string where;    ///< "domain 12".
    Bytes network_bytes;  ///< The least that must cross NICs: every byte once into each domain that wants it.
};

/// The largest cut of one kind.
struct CutBound {
    BoundKind kind = BoundKind::kDomainIngress;
    Seconds time;
    std::string where;
};

/// Every kind of bound for one piece of work.
struct CutBounds {
    std::vector<CutBound> cuts;       ///< One a kind, in the order of BoundKind; zero where nothing is cut.
    CutBound own_nic_egress;          ///< B3 where only the holders' own NICs send: what plans without proxies obey.
    Bytes network_bytes;              ///< As Bound's.

    [[nodiscard]] const CutBound& of(BoundKind kind) const { return cuts.at(static_cast<std::size_t>(kind)); }
    [[nodiscard]] Bound largest() const;
};

/// All bounds of moving the slices over the fabric. Within a domain no NIC is used.
/// Source: docs/bounds.md. A bound is infinite where all ports that could carry its bytes are down.
[[nodiscard]] CutBounds cut_bounds(const SliceTable& slices, const Fabric& fabric);

/// The largest of them; saves what only own_nic_egress needs.
[[nodiscard]] Bound lower_bound(const SliceTable& slices, const Fabric& fabric);

/// The same of moving only these slices, by their indices.
[[nodiscard]] Bound lower_bound(const SliceTable& slices, std::span<const std::uint32_t> chosen, const Fabric& fabric);

}  // namespace refit
