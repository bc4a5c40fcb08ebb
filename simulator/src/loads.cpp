// SPDX-License-Identifier: Apache-2.0
#include "refit/loads.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "refit/fabric.hpp"
#include "refit/nic_routes.hpp"
#include "refit/ring.hpp"

namespace refit {
namespace {

/// Members of a domain by whose NICs a ring runs, in the domain that has fewest.
std::size_t channels_of(const std::vector<std::vector<RankId>>& domains, const NicRoutes& routes) {
    return routes.is_plain() ? fewest_members(domains) : fewest_gates(ring_gates(domains, routes));
}

RingLoad group_load(const Cluster& cluster, const NicRoutes& routes, const std::vector<RankId>& group, CollectiveRole role,
                    double bytes) {
    const auto domains = split_by_domain(cluster, group);
    RingLoad load;
    load.role = role;
    const auto ranks = static_cast<double>(group.size());
    load.wire_bytes = is_broadcast(role) ? bytes : bytes * (ranks - 1.0) / ranks;
    load.crosses_domains = domains.size() > 1;
    load.channels = load.crosses_domains ? static_cast<double>(channels_of(domains, routes)) : 1.0;
    const auto& first = cluster.system_of(group.front());
    const auto& last = cluster.system_of(group.back());
    load.nic = std::min(first.nic_per_gpu(), last.nic_per_gpu()).bytes_per_second();
    load.nvlink = std::min(first.nvlink.value, last.nvlink.value).bytes_per_second();
    return load;
}

/// Seconds at line rate: only to find the slowest group. Rings of replicas as on one NIC, the usual reading.
double line_rate_seconds(const RingLoad& load) {
    const auto network = (is_among_replicas(load.role) ? 1.0 : load.channels) * load.nic;
    return load.wire_bytes / (load.crosses_domains ? std::min(network, load.nvlink) : load.nvlink);
}

RingLoad slowest_group(const Plan& plan, const Collective& collective, const Cluster& cluster) {
    const auto& groups = plan.groups[collective.groups];
    const NicRoutes routes{cluster};
    RingLoad slowest;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const auto load = group_load(cluster, routes, groups[i], collective.role, static_cast<double>(collective.bytes[i]));
        if (i == 0 || line_rate_seconds(load) > line_rate_seconds(slowest)) {
            slowest = load;
        }
    }
    slowest.calls = collective.calls;
    return slowest;
}

void raise_peaks(StageLoads& loads, const Traffic& traffic, const Cluster& cluster) {
    const auto raise = [](double& peak, std::uint64_t bytes, double rate_share = 1.0) {
        peak = bytes > 0 ? std::max(peak, static_cast<double>(bytes) / rate_share) : peak;
    };
    for (std::uint32_t rank = 0; rank < cluster.gpus(); ++rank) {
        const auto& port = traffic.ports()[rank];
        auto& peaks = cluster.is_trainer(RankId{rank}) ? loads.train : loads.generate;
        const auto nic_share = cluster.nic_share(RankId{rank});
        raise(peaks.nic_out, port.nic_out, nic_share);
        raise(peaks.nic_in, port.nic_in, nic_share);
        raise(peaks.nvlink_out, port.nvlink_out);
        raise(peaks.nvlink_in, port.nvlink_in);
    }
}

/// The first of the ranks whose port is busy longest, for its rate.
std::uint32_t busiest(const Traffic& traffic, std::uint64_t PortBytes::*port, const Cluster& cluster) {
    std::uint32_t busiest = 0;
    double longest = 0.0;
    for (std::uint32_t rank = 0; rank < cluster.gpus(); ++rank) {
        const auto bytes = traffic.ports()[rank].*port;
        const auto busy = bytes > 0 ? static_cast<double>(bytes) / cluster.nic_share(RankId{rank}) : 0.0;
        busiest = busy > longest ? rank : busiest;
        longest = std::max(longest, busy);
    }
    return busiest;
}

/// Weighs traffic at line rate, where ports differ or the network limits.
class FabricScale {
public:
    explicit FabricScale(const Cluster& cluster) : cluster_{cluster} {
        if (!cluster.fabric().is_plain()) {
            fabric_.emplace(make_fabric(cluster, 1.0, 1.0));
        }
    }
    [[nodiscard]] bool is_plain() const noexcept { return !fabric_; }

    [[nodiscard]] FabricLoad of(const Traffic& traffic) const {
        FabricLoad load;
        for (std::uint32_t rank = 0; fabric_ && rank < fabric_->ranks(); ++rank) {
            const auto& bytes = traffic.ports()[rank];
            const auto& rates = fabric_->ports(rank);
            raise(load.nic, load.nic_name, std::max(bytes.nic_out, bytes.nic_in), rates.nic_out, [&] { return nic_name(rank); });
            load.nvlink = std::max(load.nvlink, static_cast<double>(std::max(bytes.nvlink_out, bytes.nvlink_in)) / rates.nvlink_out);
        }
        for (std::uint32_t pod = 0; fabric_ && pod < traffic.pods().size(); ++pod) {
            const auto& bytes = traffic.pods()[pod];
            raise(load.spine, load.spine_name, std::max(bytes.up, bytes.down), fabric_->spine().up[pod],
                  [&] { return (bytes.up < bytes.down ? "downlink of pod " : "uplink of pod ") + std::to_string(pod); });
        }
        return load;
    }

private:
    template <class Name>
    static void raise(double& longest, std::string& where, std::uint64_t bytes, double rate, const Name& name) {
        const auto busy = bytes > 0 ? static_cast<double>(bytes) / rate : 0.0;
        if (busy > longest) {
            longest = busy;
            where = name();
        }
    }
    [[nodiscard]] std::string nic_name(std::uint32_t rank) const {
        return cluster_.is_trainer(RankId{rank}) ? "NIC of trainer " + std::to_string(rank)
                                                 : "NIC of generator " + std::to_string(rank - cluster_.train_gpus());
    }

    const Cluster& cluster_;
    std::optional<Fabric> fabric_;  ///< At line rate; none where the plain forms hold.
};

/// Of each collective the slowest group, and all of them together.
void add_rings(StageLoads& loads, const Plan& plan, const PlanStage& stage, const Cluster& cluster, const FabricScale& scale) {
    for (const auto& collective : stage.collectives) {
        auto& ring = loads.rings.emplace_back(slowest_group(plan, collective, cluster));
        if (!scale.is_plain()) {
            PlanStage alone;
            alone.collectives.push_back(collective);
            ring.fabric = scale.of(collective_traffic(plan, alone, cluster));
        }
    }
}

}  // namespace

PlanLoads make_loads(const Plan& plan, const Cluster& cluster) {
    PlanLoads loads;
    loads.method = plan.method;
    loads.traffic = Traffic{cluster};
    const FabricScale scale{cluster};
    Traffic bulk{cluster};
    for (const auto& stage : plan.stages) {
        auto& entry = loads.stages.emplace_back();
        entry.kind = stage.kind;
        add_rings(entry, plan, stage, cluster, scale);
        const auto transfers = transfer_traffic(plan, stage, cluster);
        raise_peaks(entry, transfers, cluster);
        entry.hops = stage.relays.depth();
        entry.chunks = stage.relays.chunks;
        const auto collectives = collective_traffic(plan, stage, cluster);
        if (stage.kind == StageKind::kBroadcast) {
            raise_peaks(entry, collectives, cluster);
        }
        entry.fabric = scale.of(stage.kind == StageKind::kBroadcast ? collectives : transfers);
        if (stage.kind == StageKind::kTransfer && !scale.is_plain()) {
            bulk.add(transfers);
            bulk.add(collectives);
        }
        loads.traffic.add(transfers);
        loads.traffic.add(collectives);
        entry.payload = stage.payload.as_double();
        entry.copied = stage.copied.as_double();
        entry.loaded_tensors = stage.loaded_tensors;
        entry.expert_parameters = stage.expert_parameters;
        entry.other_parameters = stage.other_parameters;
    }
    loads.bulk = scale.of(bulk);
    loads.busiest_sender = busiest(loads.traffic, &PortBytes::nic_out, cluster);
    loads.busiest_receiver = busiest(loads.traffic, &PortBytes::nic_in, cluster);
    return loads;
}

}  // namespace refit
