// SPDX-License-Identifier: Apache-2.0
#include "refit/fabric.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace refit {
namespace {

std::vector<std::uint32_t> domains_of(const Cluster& cluster) {
    std::vector<std::uint32_t> domains;
    for (std::uint32_t rank = 0; rank < cluster.gpus(); ++rank) {
        domains.push_back(cluster.domain_of(RankId{rank}).index());
    }
    return domains;
}

std::vector<GpuPorts> ports_of(const Cluster& cluster, const SideRates& rates) {
    std::vector<GpuPorts> ports;
    for (std::uint32_t rank = 0; rank < cluster.gpus(); ++rank) {
        const auto& side = cluster.is_trainer(RankId{rank}) ? rates.train : rates.generate;
        const auto nic = side.nic.bytes_per_second() * cluster.nic_share(RankId{rank});
        const bool is_absent = cluster.losses().is_absent(rank);
        const auto nvlink = is_absent ? 0.0 : side.nvlink.bytes_per_second();
        ports.push_back({nic, nic, nvlink, nvlink});
    }
    return ports;
}

Spine spine_of(const Cluster& cluster, const SideRates& rates) {
    const auto& settings = cluster.fabric();
    Spine spine;
    spine.rails = settings.is_rail_only ? cluster.train_system().gpus_per_node : 0;
    if (!settings.has_spine()) {
        return spine;
    }
    for (std::uint32_t domain = 0; domain < cluster.domains(); ++domain) {
        spine.pod_of.push_back(cluster.pod_of(DomainId{domain}));
    }
    spine.up.resize(cluster.pods(), 0.0);
    for (std::uint32_t rank = 0; rank < cluster.gpus(); ++rank) {
        const auto& side = cluster.is_trainer(RankId{rank}) ? rates.train : rates.generate;
        spine.up[cluster.pod_of(cluster.domain_of(RankId{rank}))] +=
            side.nic.bytes_per_second() / settings.oversubscription;
    }
    spine.down = spine.up;
    return spine;
}

}  // namespace

SideRates port_rates(const Cluster& cluster, double nic, double nvlink) {
    const auto of = [&](const System& system) {
        return PortRates{system.nic_per_gpu() * nic, system.nvlink.value * nvlink};
    };
    return {of(cluster.train_system()), of(cluster.generate_system())};
}

Fabric::Fabric(std::vector<std::uint32_t> domain_of, std::vector<GpuPorts> ports, Spine spine)
    : domain_of_{std::move(domain_of)}, ports_{std::move(ports)}, spine_{std::move(spine)} {
    if (domain_of_.size() != ports_.size() || ports_.empty()) {
        throw std::logic_error{"Fabric: a domain and ports for each rank"};
    }
    members_.resize(std::ranges::max(domain_of_) + std::size_t{1});
    if (!spine_.pod_of.empty() && (spine_.pod_of.size() != members_.size() || spine_.up.size() != spine_.down.size())) {
        throw std::logic_error{"Fabric: a pod for each domain, and rates for each pod"};
    }
    domain_ports_.resize(members_.size());
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
        place_.push_back(static_cast<std::uint32_t>(members_[domain_of_[rank]].size()));
        members_[domain_of_[rank]].push_back(rank);
        auto& sum = domain_ports_[domain_of_[rank]];
        sum.nic_out += ports_[rank].nic_out;
        sum.nic_in += ports_[rank].nic_in;
        sum.nvlink_out += ports_[rank].nvlink_out;
        sum.nvlink_in += ports_[rank].nvlink_in;
    }
}

Fabric::Fabric(const Cluster& cluster, const SideRates& rates)
    : Fabric{domains_of(cluster), ports_of(cluster, rates), spine_of(cluster, rates)} {}

Fabric make_fabric(const Cluster& cluster, double nic, double nvlink) {
    return Fabric{cluster, port_rates(cluster, nic, nvlink)};
}

Fabric make_fabric(const Scenario& scenario) {
    const auto& constants = scenario.engine.constants;
    return make_fabric(scenario.cluster, constants.nic_efficiency.value, constants.nvlink_efficiency.value);
}

}  // namespace refit
