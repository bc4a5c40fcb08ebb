// SPDX-License-Identifier: Apache-2.0
#include "refit/bound.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "refit/overlap.hpp"

namespace refit {
namespace {

using DomainSet = std::vector<std::uint32_t>;

void sort_unique(DomainSet& domains) {
    std::ranges::sort(domains);
    domains.erase(std::unique(domains.begin(), domains.end()), domains.end());
}

/// Bytes that each cut has to carry, gathered over the workload.
class Demands {
public:
    Demands(const Workload& workload, const TrainLayout& train, const Cluster& cluster)
        : train_{train}, cluster_{cluster}, entering_(cluster.domains(), 0), wanted_(cluster.domains(), 0) {
        for (const auto& entry : workload.classes()) {
            for (std::uint32_t generate = 0; generate < entry.destinations.size(); ++generate) {
                add(entry, generate);
            }
        }
    }

    [[nodiscard]] const std::vector<std::uint64_t>& entering() const noexcept { return entering_; }
    [[nodiscard]] const std::vector<std::uint64_t>& wanted() const noexcept { return wanted_; }
    /// Bytes that exactly these domains hold and some domain outside them wants.
    [[nodiscard]] const std::map<DomainSet, std::uint64_t>& leaving() const noexcept { return leaving_; }
    [[nodiscard]] std::uint64_t copies() const noexcept { return std::accumulate(entering_.begin(), entering_.end(), std::uint64_t{0}); }

private:
    void add(const WorkloadClass& entry, std::uint32_t generate) {
        const auto& destination = entry.destinations[generate];
        std::vector<DomainSet> receivers;
        for (const auto& shard : destination.shards()) {
            receivers.push_back(domains_of(shard.members, cluster_.train_gpus()));
        }
        const auto cells = overlap(entry.source, destination);
        for (const auto& slice : entry.slices) {
            if (slice.generate_stage == generate) {
                add_slice(entry, slice, cells, receivers);
                add_wanted(entry, slice, destination);
            }
        }
    }

    [[nodiscard]] DomainSet domains_of(const std::vector<std::uint32_t>& members, std::uint32_t first) const {
        DomainSet domains;
        for (const auto member : members) {
            domains.push_back(cluster_.domain_of(RankId{first + member}).index());
        }
        sort_unique(domains);
        return domains;
    }

    void add_slice(const WorkloadClass& entry, const WorkloadSlice& slice, const std::vector<OverlapCell>& cells,
                   const std::vector<DomainSet>& receivers) {
        std::vector<DomainSet> holders;
        for (const auto& shard : entry.source.shards()) {
            holders.push_back(domains_of(shard.members, slice.train_stage * train_.ranks_per_stage()));
        }
        for (const auto& cell : cells) {
            const auto bytes = cell.box.volume() * entry.element_bytes() * slice.layers;
            const auto& held = holders[cell.source];
            bool leaves = false;
            for (const auto domain : receivers[cell.destination]) {
                if (!std::ranges::binary_search(held, domain)) {
                    entering_[domain] += bytes;
                    leaves = true;
                }
            }
            if (leaves) {
                leaving_[held] += bytes;
            }
        }
    }

    void add_wanted(const WorkloadClass& entry, const WorkloadSlice& slice, const Distribution& destination) {
        for (const auto& shard : destination.shards()) {
            const auto bytes = shard.elements() * entry.element_bytes() * slice.layers;
            for (const auto member : shard.members) {
                wanted_[cluster_.domain_of(cluster_.generator(member)).index()] += bytes;
            }
        }
    }

    const TrainLayout& train_;
    const Cluster& cluster_;
    std::vector<std::uint64_t> entering_;
    std::vector<std::uint64_t> wanted_;
    std::map<DomainSet, std::uint64_t> leaving_;
};

/// Summed port rates of the ranks in each domain. Unit: bytes per second.
struct DomainPorts {
    std::vector<double> nic;      ///< Of all ranks in the domain.
    std::vector<double> ingress;  ///< NIC and NVLink of the generators in it.
};

DomainPorts ports_of(const Cluster& cluster, const SideRates& rates) {
    DomainPorts ports{std::vector<double>(cluster.domains(), 0.0), std::vector<double>(cluster.domains(), 0.0)};
    for (std::uint32_t rank = 0; rank < cluster.gpus(); ++rank) {
        const auto domain = cluster.domain_of(RankId{rank}).index();
        const auto& side = cluster.is_trainer(RankId{rank}) ? rates.train : rates.generate;
        ports.nic[domain] += side.nic.bytes_per_second();
        if (!cluster.is_trainer(RankId{rank})) {
            ports.ingress[domain] += side.nic.bytes_per_second() + side.nvlink.bytes_per_second();
        }
    }
    return ports;
}

void raise(Bound& bound, double bytes, double rate, BoundKind kind, const std::string& where) {
    if (bytes > 0.0 && Seconds{bytes / rate} > bound.time) {
        bound.time = Seconds{bytes / rate};
        bound.kind = kind;
        bound.where = where;
    }
}

/// Bytes whose holders all lie in `domains`, over the NICs of those domains.
void raise_by_egress(Bound& bound, const Demands& demands, const DomainPorts& ports, const DomainSet& domains,
                     const std::string& where) {
    double bytes = 0.0;
    for (const auto& [held, leaving] : demands.leaving()) {
        bytes += std::ranges::includes(domains, held) ? static_cast<double>(leaving) : 0.0;
    }
    double rate = 0.0;
    for (const auto domain : domains) {
        rate += ports.nic[domain];
    }
    raise(bound, bytes, rate, BoundKind::kSourceEgress, where);
}

}  // namespace

SideRates port_rates(const Cluster& cluster, double nic, double nvlink) {
    const auto of = [&](const System& system) {
        return PortRates{system.nic_per_gpu() * nic, system.nvlink.value * nvlink};
    };
    return {of(cluster.train_system()), of(cluster.generate_system())};
}

std::string_view name_of(BoundKind kind) noexcept {
    switch (kind) {
        case BoundKind::kPortIngress:
            return "port-ingress";
        case BoundKind::kSourceEgress:
            return "source-egress";
        case BoundKind::kCopyVolume:
            return "copy-volume";
        case BoundKind::kDomainIngress:
            break;
    }
    return "domain-ingress";
}

Bound lower_bound(const Workload& workload, const TrainLayout& train, const Cluster& cluster, const SideRates& rates) {
    const Demands demands{workload, train, cluster};
    const auto ports = ports_of(cluster, rates);
    Bound bound;
    bound.network_bytes = Bytes{demands.copies()};
    DomainSet everywhere;
    DomainSet trainers;
    for (std::uint32_t domain = 0; domain < cluster.domains(); ++domain) {
        const auto where = "domain " + std::to_string(domain);
        const auto entering = static_cast<double>(demands.entering()[domain]);
        raise(bound, entering, ports.nic[domain], BoundKind::kDomainIngress, where);
        raise(bound, static_cast<double>(demands.wanted()[domain]), ports.ingress[domain], BoundKind::kPortIngress, where);
        everywhere.push_back(domain);
    }
    for (std::uint32_t rank = 0; rank < cluster.train_gpus(); ++rank) {
        trainers.push_back(cluster.domain_of(RankId{rank}).index());
    }
    sort_unique(trainers);
    for (const auto domain : trainers) {
        raise_by_egress(bound, demands, ports, {domain}, "trainer domain " + std::to_string(domain));
    }
    for (const auto& [held, bytes] : demands.leaving()) {
        raise_by_egress(bound, demands, ports, held, "trainer domains " + std::to_string(held.front()) + " to " + std::to_string(held.back()));
    }
    raise_by_egress(bound, demands, ports, trainers, "all trainer domains");
    double all_nics = 0.0;
    for (const auto domain : everywhere) {
        all_nics += ports.nic[domain];
    }
    raise(bound, static_cast<double>(demands.copies()), all_nics, BoundKind::kCopyVolume, "all NICs");
    return bound;
}

}  // namespace refit
