// SPDX-License-Identifier: Apache-2.0
#include "refit/loads.hpp"

#include <algorithm>

#include "refit/ring.hpp"

namespace refit {
namespace {

RingLoad group_load(const Cluster& cluster, const std::vector<RankId>& group, CollectiveRole role, double bytes) {
    const auto domains = split_by_domain(cluster, group);
    RingLoad load;
    load.role = role;
    const auto ranks = static_cast<double>(group.size());
    load.wire_bytes = is_broadcast(role) ? bytes : bytes * (ranks - 1.0) / ranks;
    load.crosses_domains = domains.size() > 1;
    // Published times fit with one NIC for a ring of replicas, whatever the members of its domains.
    load.channels = load.crosses_domains && !is_among_replicas(role) ? static_cast<double>(fewest_members(domains)) : 1.0;
    const auto& first = cluster.system_of(group.front());
    const auto& last = cluster.system_of(group.back());
    load.nic = std::min(first.nic_per_gpu(), last.nic_per_gpu()).bytes_per_second();
    load.nvlink = std::min(first.nvlink.value, last.nvlink.value).bytes_per_second();
    return load;
}

/// Seconds at line rate: only to find the slowest group.
double line_rate_seconds(const RingLoad& load) {
    const auto network = load.channels * load.nic;
    return load.wire_bytes / (load.crosses_domains ? std::min(network, load.nvlink) : load.nvlink);
}

RingLoad slowest_group(const Plan& plan, const Collective& collective, const Cluster& cluster) {
    const auto& groups = plan.groups[collective.groups];
    RingLoad slowest;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const auto load = group_load(cluster, groups[i], collective.role, static_cast<double>(collective.bytes[i]));
        if (i == 0 || line_rate_seconds(load) > line_rate_seconds(slowest)) {
            slowest = load;
        }
    }
    slowest.calls = collective.calls;
    return slowest;
}

void raise_peaks(StageLoads& loads, const Traffic& traffic, const Cluster& cluster) {
    const auto raise = [](double& peak, std::uint64_t bytes) { peak = std::max(peak, static_cast<double>(bytes)); };
    for (std::uint32_t rank = 0; rank < cluster.gpus(); ++rank) {
        const auto& port = traffic.ports()[rank];
        auto& peaks = cluster.is_trainer(RankId{rank}) ? loads.train : loads.generate;
        raise(peaks.nic_out, port.nic_out);
        raise(peaks.nic_in, port.nic_in);
        raise(peaks.nvlink_out, port.nvlink_out);
        raise(peaks.nvlink_in, port.nvlink_in);
    }
}

std::uint32_t busiest(const Traffic& traffic, std::uint64_t PortBytes::* port) {
    const auto& ports = traffic.ports();
    return static_cast<std::uint32_t>(std::ranges::max_element(ports, {}, port) - ports.begin());
}

}  // namespace

PlanLoads make_loads(const Plan& plan, const Cluster& cluster) {
    PlanLoads loads;
    loads.method = plan.method;
    loads.traffic = Traffic{cluster.gpus()};
    for (const auto& stage : plan.stages) {
        auto& entry = loads.stages.emplace_back();
        entry.kind = stage.kind;
        for (const auto& collective : stage.collectives) {
            entry.rings.push_back(slowest_group(plan, collective, cluster));
        }
        const auto transfers = transfer_traffic(plan, stage, cluster);
        raise_peaks(entry, transfers, cluster);
        entry.hops = stage.relays.depth();
        entry.chunks = stage.relays.chunks;
        const auto collectives = collective_traffic(plan, stage, cluster);
        if (stage.kind == StageKind::kBroadcast) {
            raise_peaks(entry, collectives, cluster);
        }
        loads.traffic.add(transfers);
        loads.traffic.add(collectives);
        entry.payload = stage.payload.as_double();
        entry.copied = stage.copied.as_double();
        entry.loaded_tensors = stage.loaded_tensors;
        entry.expert_parameters = stage.expert_parameters;
        entry.other_parameters = stage.other_parameters;
    }
    loads.busiest_sender = busiest(loads.traffic, &PortBytes::nic_out);
    loads.busiest_receiver = busiest(loads.traffic, &PortBytes::nic_in);
    return loads;
}

}  // namespace refit
