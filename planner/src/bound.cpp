// SPDX-License-Identifier: Apache-2.0
#include "refit/bound.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
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

/// What the cuts have to carry, gathered over slices.
class Demands {
public:
    Demands(const SliceTable& slices, std::span<const std::uint32_t> chosen, const Fabric& fabric)
        : fabric_{fabric},
          domains_(slices.rank_sets()),
          wanted_(slices.rank_sets(), 0.0),
          entering_(slices.rank_sets(), 0),
          held_(slices.rank_sets(), 0.0),
          leaving_(slices.rank_sets(), 0.0),
          local_(slices.rank_sets(), 0.0),
          entering(fabric.domains(), 0),
          need(fabric.ranks(), 0.0),
          local_need(fabric.ranks(), 0.0),
          is_sending(fabric.domains(), false) {
        for (const auto index : chosen) {
            add(slices.slices()[index], slices);
        }
        for (std::uint32_t set = 0; set < slices.rank_sets(); ++set) {
            sum_up(set, slices.rank_set(set));
        }
    }

private:
    /// Of a rank set that some slice has.
    const DomainSet& domains(std::uint32_t set, const SliceTable& slices) {
        if (domains_[set].empty()) {
            domains_[set] = domains_of(slices.rank_set(set), fabric_);
        }
        return domains_[set];
    }

    void add(const Slice& slice, const SliceTable& slices) {
        const auto& held = domains(slice.holders, slices);
        const auto& wanting = domains(slice.receivers, slices);
        const auto bytes = static_cast<double>(slice.bytes);
        wanted_[slice.receivers] += bytes;
        held_[slice.holders] += bytes;
        if (held.back() < wanting.front() || wanting.back() < held.front()) {
            entering_[slice.receivers] += slice.bytes;
            copies += Bytes{slice.bytes} * wanting.size();
            leaving_[slice.holders] += bytes;
            return;
        }
        bool leaves = false;
        for (const auto domain : wanting) {
            if (!std::ranges::binary_search(held, domain)) {
                entering[domain] += slice.bytes;
                copies += Bytes{slice.bytes};
                leaves = true;
            }
        }
        leaving_[slice.holders] += leaves ? bytes : 0.0;
        if (held.size() == 1) {
            local_[slice.holders] += wanting == held ? bytes : 0.0;
            for (const auto rank : slices.rank_set(slice.receivers)) {
                local_need[rank] += fabric_.domain_of(rank) == held.front() ? bytes : 0.0;
            }
        }
    }

    void sum_up(std::uint32_t set, const std::vector<std::uint32_t>& ranks) {
        const auto list = [set](auto& by_set, const std::vector<double>& bytes) {
            if (bytes[set] > 0.0) {
                by_set.emplace_back(set, bytes[set]);
            }
        };
        list(by_holders, held_);
        list(leaving_by_holders, leaving_);
        list(local_by_holders, local_);
        if (leaving_[set] > 0.0) {
            by_domains[domains_[set]] += leaving_[set];
        }
        if (wanted_[set] > 0.0) {
            for (const auto rank : ranks) {
                need[rank] += wanted_[set];
            }
        }
        const bool sends = leaving_[set] > 0.0 || wanted_[set] > 0.0;
        for (const auto domain : domains_[set]) {
            entering[domain] += entering_[set];
            is_sending[domain] = is_sending[domain] || sends;
        }
    }

    const Fabric& fabric_;
    std::vector<DomainSet> domains_;        ///< By rank set, as all of these.
    std::vector<double> wanted_;            ///< As receivers.
    std::vector<std::uint64_t> entering_;   ///< As receivers, none of whose domains has a holder.
    std::vector<double> held_;              ///< As holders, as the following.
    std::vector<double> leaving_;           ///< What another domain wants.
    std::vector<double> local_;             ///< What no other domain wants or holds.

public:
    using BySet = std::vector<std::pair<std::uint32_t, double>>;
    std::vector<std::uint64_t> entering;     ///< By domain: wanted there and held elsewhere only.
    std::vector<double> need;                ///< By rank.
    std::vector<double> local_need;          ///< By rank: held in its own domain only.
    std::vector<bool> is_sending;            ///< By domain: has a receiver, or a holder of what leaves.
    std::map<DomainSet, double> by_domains;  ///< What leaves the domains that hold it.
    BySet by_holders;                        ///< By rank set.
    BySet leaving_by_holders;
    BySet local_by_holders;                  ///< Of it, what no other domain wants or holds.
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

std::vector<EgressGroup> groups_of(const Demands::BySet& by_holders, const SliceTable& slices) {
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
void add_pods(CutBounds& bounds, const SliceTable& slices, std::span<const std::uint32_t> chosen, const Fabric& fabric) {
    const auto& spine = fabric.spine();
    std::vector<double> entering(spine.pods(), 0.0);
    std::map<DomainSet, double> leaving;
    std::vector<bool> is_taking_part(spine.pods(), false);
    double copies = 0.0;
    for (const auto index : chosen) {
        const auto& slice = slices.slices()[index];
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

CutBounds all_bounds(const SliceTable& slices, std::span<const std::uint32_t> chosen, const Fabric& fabric, bool with_own_nics) {
    const Demands demands{slices, chosen, fabric};
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
        add_pods(bounds, slices, chosen, fabric);
    }
    double nics = 0.0;
    for (std::uint32_t domain = 0; domain < fabric.domains(); ++domain) {
        nics += demands.is_sending[domain] ? domain_nics[domain] : 0.0;
    }
    raise(bounds.cuts[static_cast<std::size_t>(BoundKind::kCopyVolume)], demands.copies.as_double(), nics, "all NICs");
    return bounds;
}

std::vector<std::uint32_t> all_of(const SliceTable& slices) {
    std::vector<std::uint32_t> indices(slices.slices().size());
    std::iota(indices.begin(), indices.end(), 0U);
    return indices;
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

CutBounds cut_bounds(const SliceTable& slices, const Fabric& fabric) { return all_bounds(slices, all_of(slices), fabric, true); }

Bound lower_bound(const SliceTable& slices, const Fabric& fabric) { return lower_bound(slices, all_of(slices), fabric); }

Bound lower_bound(const SliceTable& slices, std::span<const std::uint32_t> chosen, const Fabric& fabric) {
    return all_bounds(slices, chosen, fabric, false).largest();
}

}  // namespace refit
