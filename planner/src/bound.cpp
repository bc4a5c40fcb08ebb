// SPDX-License-Identifier: Apache-2.0
#include "refit/bound.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "egress.hpp"

namespace refit {
namespace {

using DomainSet = std::vector<std::uint32_t>;

DomainSet domains_of(const std::vector<std::uint32_t>& ranks, const Fabric& fabric) {
    DomainSet domains;
    for (const auto rank : ranks) {
        if (domains.empty() || domains.back() != fabric.domain_of(rank)) {
            domains.push_back(fabric.domain_of(rank));
        }
    }
    std::ranges::sort(domains);
    domains.erase(std::unique(domains.begin(), domains.end()), domains.end());
    return domains;
}

/// What the cuts have to carry, gathered over the slices.
class Demands {
public:
    Demands(const SliceTable& slices, const Fabric& fabric)
        : fabric_{fabric},
          domains_(slices.rank_sets()),
          wanted_(slices.rank_sets(), 0.0),
          entering(fabric.domains(), 0),
          need(fabric.ranks(), 0.0),
          local_need(fabric.ranks(), 0.0) {
        for (std::uint32_t set = 0; set < slices.rank_sets(); ++set) {
            domains_[set] = domains_of(slices.rank_set(set), fabric);
        }
        for (const auto& slice : slices.slices()) {
            add(slice, slices);
        }
        for (std::uint32_t set = 0; set < slices.rank_sets(); ++set) {
            for (const auto rank : wanted_[set] > 0.0 ? slices.rank_set(set) : std::vector<std::uint32_t>{}) {
                need[rank] += wanted_[set];
            }
        }
    }

private:
    void add(const Slice& slice, const SliceTable& slices) {
        const auto& held = domains_[slice.holders];
        bool leaves = false;
        for (const auto domain : domains_[slice.receivers]) {
            if (!std::ranges::binary_search(held, domain)) {
                entering[domain] += slice.bytes;
                copies += Bytes{slice.bytes};
                leaves = true;
            }
        }
        if (held.size() == 1 && domains_[slice.receivers] == held) {
            local_by_holders[slice.holders] += static_cast<double>(slice.bytes);
        }
        wanted_[slice.receivers] += static_cast<double>(slice.bytes);
        by_holders[slice.holders] += static_cast<double>(slice.bytes);
        if (leaves) {
            by_domains[held] += static_cast<double>(slice.bytes);
            leaving_by_holders[slice.holders] += static_cast<double>(slice.bytes);
            is_sending_.insert(is_sending_.end(), held.begin(), held.end());
        }
        is_sending_.insert(is_sending_.end(), domains_[slice.receivers].begin(), domains_[slice.receivers].end());
        if (is_sending_.size() > 4 * std::size_t{fabric_.domains()} + 64) {
            compact();
        }
        if (held.size() == 1) {
            for (const auto rank : std::ranges::binary_search(domains_[slice.receivers], held.front())
                                       ? slices.rank_set(slice.receivers)
                                       : std::vector<std::uint32_t>{}) {
                local_need[rank] += fabric_.domain_of(rank) == held.front() ? static_cast<double>(slice.bytes) : 0.0;
            }
        }
    }
    void compact() {
        std::ranges::sort(is_sending_);
        is_sending_.erase(std::unique(is_sending_.begin(), is_sending_.end()), is_sending_.end());
    }

    const Fabric& fabric_;
    std::vector<DomainSet> domains_;  ///< By rank set.
    std::vector<double> wanted_;      ///< By rank set, as receivers.
    DomainSet is_sending_;

public:
    /// Domains with a holder or a receiver.
    [[nodiscard]] const DomainSet& senders() {
        compact();
        return is_sending_;
    }

    std::vector<std::uint64_t> entering;             ///< By domain: wanted there and held elsewhere only.
    std::vector<double> need;                        ///< By rank.
    std::vector<double> local_need;                  ///< By rank: held in its own domain only.
    std::map<DomainSet, double> by_domains;          ///< What leaves the domains that hold it.
    std::map<std::uint32_t, double> by_holders;      ///< By rank set.
    std::map<std::uint32_t, double> leaving_by_holders;
    std::map<std::uint32_t, double> local_by_holders;  ///< Of it, what no other domain wants or holds.
    Bytes copies;
};

std::string describe(const std::vector<std::uint32_t>& cut, const std::string& one) {
    if (cut.size() == 1) {
        return one + " " + std::to_string(cut.front());
    }
    return std::to_string(cut.size()) + " " + one + "s, " + std::to_string(cut.front()) + " to " + std::to_string(cut.back());
}

void raise(CutBound& bound, double bytes, double rate, const std::string& where) {
    if (bytes <= 0.0) {
        return;
    }
    // A port that is down never finishes: the quotient is infinite.
    if (Seconds{bytes / rate} > bound.time) {
        bound.time = Seconds{bytes / rate};
        bound.where = where;
    }
}

void raise_by_egress(CutBound& bound, const std::vector<EgressGroup>& groups, const std::vector<double>& rates,
                     const std::string& one) {
    if (groups.empty()) {
        return;
    }
    for (const auto& group : groups) {
        if (std::ranges::none_of(group.nodes, [&](auto node) { return rates[node] > 0.0; })) {
            bound = {bound.kind, Seconds{std::numeric_limits<double>::infinity()}, describe(group.nodes, one)};
            return;
        }
    }
    const auto shares = least_egress(groups, rates);
    if (Seconds{shares.seconds} > bound.time) {
        bound.time = Seconds{shares.seconds};
        bound.where = describe(shares.cut, one);
    }
}

std::vector<EgressGroup> groups_of(const std::map<std::uint32_t, double>& by_holders, const SliceTable& slices) {
    std::vector<EgressGroup> groups;
    groups.reserve(by_holders.size());
    for (const auto& [holders, bytes] : by_holders) {
        groups.push_back({slices.rank_set(holders), bytes});
    }
    return groups;
}

template <class Rate>
std::vector<double> rates_of(std::uint32_t count, Rate&& rate) {
    std::vector<double> rates;
    rates.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        rates.push_back(rate(i));
    }
    return rates;
}

void add_ingress(CutBounds& bounds, const Demands& demands, const Fabric& fabric) {
    auto& by_domain = bounds.cuts[static_cast<std::size_t>(BoundKind::kDomainIngress)];
    auto& by_gpu = bounds.cuts[static_cast<std::size_t>(BoundKind::kGpuIngress)];
    auto& by_nvlink = bounds.cuts[static_cast<std::size_t>(BoundKind::kLocalIngress)];
    auto& by_ports = bounds.cuts[static_cast<std::size_t>(BoundKind::kPortIngress)];
    for (std::uint32_t domain = 0; domain < fabric.domains(); ++domain) {
        const auto where = "domain " + std::to_string(domain);
        raise(by_domain, static_cast<double>(demands.entering[domain]), fabric.domain_ports(domain).nic_in, where);
        double need = 0.0;
        double rate = 0.0;
        for (const auto rank : fabric.members(domain)) {
            const auto& ports = fabric.ports(rank);
            const auto gpu = "rank " + std::to_string(rank);
            raise(by_gpu, demands.need[rank], ports.nic_in + ports.nvlink_in, gpu);
            raise(by_nvlink, demands.local_need[rank], ports.nvlink_in, gpu);
            need += demands.need[rank];
            // What only passes through a GPU that wants nothing has to reach one that does.
            rate += demands.need[rank] > 0.0 ? ports.nic_in + ports.nvlink_in : 0.0;
        }
        raise(by_ports, need, rate, where);
    }
}

DomainSet pods_of(const std::vector<std::uint32_t>& ranks, const Fabric& fabric) {
    auto pods = domains_of(ranks, fabric);
    for (auto& domain : pods) {
        domain = fabric.pod_of(domain);
    }
    std::ranges::sort(pods);
    pods.erase(std::unique(pods.begin(), pods.end()), pods.end());
    return pods;
}

/// The cuts between pods, as those between domains.
void add_pods(CutBounds& bounds, const SliceTable& slices, const Fabric& fabric) {
    const auto& spine = fabric.spine();
    std::vector<double> entering(spine.pods(), 0.0);
    std::map<DomainSet, double> leaving;
    std::vector<bool> is_taking_part(spine.pods(), false);
    double copies = 0.0;
    for (const auto& slice : slices.slices()) {
        const auto held = pods_of(slices.rank_set(slice.holders), fabric);
        bool leaves = false;
        for (const auto pod : pods_of(slices.rank_set(slice.receivers), fabric)) {
            is_taking_part[pod] = true;
            if (!std::ranges::binary_search(held, pod)) {
                entering[pod] += static_cast<double>(slice.bytes);
                copies += static_cast<double>(slice.bytes);
                leaves = true;
            }
        }
        for (const auto pod : held) {
            is_taking_part[pod] = true;
        }
        if (leaves) {
            leaving[held] += static_cast<double>(slice.bytes);
        }
    }
    double uplinks = 0.0;
    std::vector<EgressGroup> groups;
    for (std::uint32_t pod = 0; pod < spine.pods(); ++pod) {
        raise(bounds.cuts[static_cast<std::size_t>(BoundKind::kPodIngress)], entering[pod], spine.down[pod], "pod " + std::to_string(pod));
        uplinks += is_taking_part[pod] ? spine.up[pod] : 0.0;
    }
    for (const auto& [held, bytes] : leaving) {
        groups.push_back({held, bytes});
    }
    raise_by_egress(bounds.cuts[static_cast<std::size_t>(BoundKind::kPodEgress)], groups, spine.up, "pod");
    raise(bounds.cuts[static_cast<std::size_t>(BoundKind::kPodVolume)], copies, uplinks, "all uplinks");
}

CutBounds all_bounds(const SliceTable& slices, const Fabric& fabric, bool with_own_nics) {
    Demands demands{slices, fabric};
    CutBounds bounds;
    for (const auto kind : {BoundKind::kDomainIngress, BoundKind::kGpuIngress, BoundKind::kLocalIngress, BoundKind::kPortIngress,
                            BoundKind::kSourceEgress, BoundKind::kGpuEgress, BoundKind::kLocalEgress, BoundKind::kCopyVolume,
                            BoundKind::kPodIngress, BoundKind::kPodEgress, BoundKind::kPodVolume}) {
        bounds.cuts.push_back({kind, Seconds{}, ""});
    }
    bounds.own_nic_egress.kind = BoundKind::kSourceEgress;
    bounds.network_bytes = demands.copies;
    add_ingress(bounds, demands, fabric);
    const auto domain_nics = rates_of(fabric.domains(), [&](auto i) { return fabric.domain_ports(i).nic_out; });
    std::vector<EgressGroup> domain_groups;
    for (const auto& [held, bytes] : demands.by_domains) {
        domain_groups.push_back({held, bytes});
    }
    raise_by_egress(bounds.cuts[static_cast<std::size_t>(BoundKind::kSourceEgress)], domain_groups, domain_nics, "domain");
    raise_by_egress(bounds.cuts[static_cast<std::size_t>(BoundKind::kGpuEgress)],
                    groups_of(demands.by_holders, slices),
                    rates_of(fabric.ranks(), [&](auto i) { return fabric.ports(i).nic_out + fabric.ports(i).nvlink_out; }),
                    "rank");
    raise_by_egress(bounds.cuts[static_cast<std::size_t>(BoundKind::kLocalEgress)],
                    groups_of(demands.local_by_holders, slices),
                    rates_of(fabric.ranks(), [&](auto i) { return fabric.ports(i).nvlink_out; }),
                    "rank");
    if (with_own_nics) {
        raise_by_egress(bounds.own_nic_egress,
                        groups_of(demands.leaving_by_holders, slices),
                        rates_of(fabric.ranks(), [&](auto i) { return fabric.ports(i).nic_out; }),
                        "rank");
    }
    if (fabric.spine().pods() > 0) {
        add_pods(bounds, slices, fabric);
    }
    double nics = 0.0;
    for (const auto domain : demands.senders()) {
        nics += domain_nics[domain];
    }
    raise(bounds.cuts[static_cast<std::size_t>(BoundKind::kCopyVolume)], demands.copies.as_double(), nics, "all NICs");
    return bounds;
}

}  // namespace

std::string_view name_of(BoundKind kind) noexcept {
    switch (kind) {
        case BoundKind::kGpuIngress:
            return "gpu-ingress";
        case BoundKind::kLocalIngress:
            return "local-ingress";
        case BoundKind::kPortIngress:
            return "port-ingress";
        case BoundKind::kSourceEgress:
            return "source-egress";
        case BoundKind::kGpuEgress:
            return "gpu-egress";
        case BoundKind::kLocalEgress:
            return "local-egress";
        case BoundKind::kCopyVolume:
            return "copy-volume";
        case BoundKind::kPodIngress:
            return "pod-ingress";
        case BoundKind::kPodEgress:
            return "pod-egress";
        case BoundKind::kPodVolume:
            return "pod-volume";
        case BoundKind::kDomainIngress:
            break;
    }
    return "domain-ingress";
}

Bound CutBounds::largest() const {
    const auto& cut = *std::ranges::max_element(cuts, {}, &CutBound::time);
    return {cut.time, cut.kind, cut.where, network_bytes};
}

CutBounds cut_bounds(const SliceTable& slices, const Fabric& fabric) { return all_bounds(slices, fabric, true); }

Bound lower_bound(const SliceTable& slices, const Fabric& fabric) { return all_bounds(slices, fabric, false).largest(); }

}  // namespace refit
