// SPDX-License-Identifier: Apache-2.0
#include "refit/traffic.hpp"

#include <algorithm>

#include "refit/nic_routes.hpp"
#include "refit/ring.hpp"

namespace refit {
namespace {

/// Part `index` of `count` nearly equal parts of `bytes`, which sum to it.
std::uint64_t share(std::uint64_t bytes, std::uint64_t count, std::uint64_t index) {
    return bytes / count + (index < bytes % count ? 1 : 0);
}

/// Each hop of a ring collective of one group. The ring enters each domain once, at the root's first. Where it crosses
/// domains it runs as several channels, at most one a member of the smallest domain part whose NIC works, each on a NIC
/// of its own (replica collectives: one channel).
/// Source: NCCL's ring channels, one a NIC; docs/cost_model.md.
template <class Visit>
void visit_ring(const Cluster& cluster, const NicRoutes& routes, const std::vector<RankId>& group, CollectiveRole role,
                std::uint64_t bytes, const Visit& visit) {
    const auto domains = split_by_domain(cluster, group);
    const auto ranks = group.size();
    const bool crosses = domains.size() > 1;
    const auto gates = routes.is_plain() || !crosses ? RingGates{} : ring_gates(domains, routes);
    const auto channels = is_among_replicas(role) || !crosses ? std::size_t{1}
                          : gates.empty()                     ? fewest_members(domains)
                                                              : fewest_gates(gates);
    // A hop carries the whole message of a broadcast, and of an all-gather all but what its receiver contributed.
    const auto hop_bytes = [&](std::size_t receiver) {
        return is_broadcast(role) ? bytes : bytes - share(bytes, ranks, receiver);
    };
    const std::size_t hops = is_broadcast(role) ? ranks - 1 : ranks;
    for (std::size_t channel = 0; channel < channels; ++channel) {
        const auto member_of = [&](std::size_t d) {
            return gates.empty() ? channel * domains[d].size() / channels
                                 : gates[d][channel * gates[d].size() / channels];
        };
        std::size_t position = 0;
        for (std::size_t d = 0; d < domains.size(); ++d) {
            const auto& members = domains[d];
            const auto entry = d == 0 ? 0 : member_of(d);
            for (std::size_t i = 0; i < members.size() && position < hops; ++i, ++position) {
                const auto amount = share(hop_bytes((position + 1) % ranks), channels, channel);
                const auto from = members[(entry + i) % members.size()];
                if (i + 1 < members.size()) {
                    visit({from, members[(entry + i + 1) % members.size()], amount, false});
                    continue;
                }
                const auto other = (d + 1) % domains.size();
                const auto& next = domains[other];
                if (crosses) {
                    visit({members[member_of(d)], next[member_of(other)], amount, true});
                } else if (from != next.front()) {
                    visit({from, next.front(), amount, false});
                }
            }
        }
    }
}

template <class Visit>
void visit_hop(const Cluster& cluster, RankId source, RankId destination, std::uint64_t bytes, const Visit& visit) {
    if (source != destination) {
        visit(Hop{source, destination, bytes, cluster.domain_of(source) != cluster.domain_of(destination)});
    }
}

template <class Visit>
void visit_transfers(const Plan& plan, const PlanStage& stage, const Cluster& cluster, const Visit& visit) {
    const auto& relays = stage.relays;
    for (std::size_t i = 0; i < relays.size(); ++i) {
        visit_hop(cluster, RankId{relays.source[i]}, RankId{relays.destination[i]}, relays.messages[relays.message[i]].bytes, visit);
    }
    std::vector<std::uint64_t> bytes;
    for (const auto& use : stage.transfers) {
        const auto& block = plan.blocks[use.block];
        bytes.clear();
        for (const auto& box : block.boxes) {
            bytes.push_back(box.volume() * block.element_bytes * use.tensors);
        }
        for (std::size_t i = 0; i < block.size(); ++i) {
            visit_hop(cluster,
                      RankId{use.first_source.index() + block.source[i]},
                      cluster.generator(block.destination[i]),
                      bytes[block.box[i]],
                      visit);
        }
    }
}

template <class Visit>
void visit_collectives(const Plan& plan, const PlanStage& stage, const Cluster& cluster, const NicRoutes& routes,
                       const Visit& visit) {
    for (const auto& collective : stage.collectives) {
        const auto& groups = plan.groups[collective.groups];
        for (std::size_t i = 0; i < groups.size(); ++i) {
            visit_ring(cluster, routes, groups[i], collective.role, collective.bytes[i], visit);
        }
    }
}

/// Takes hops apart where they need other GPUs' NICs. One that nothing carries stays whole.
template <class Visit>
auto on_their_way(const NicRoutes& routes, const Visit& visit) {
    return [&routes, &visit](const Hop& hop) {
        const auto route = hop.is_network && !routes.is_plain() ? routes.between(hop.source, hop.destination) : std::nullopt;
        if (!route) {
            visit(hop);
            return;
        }
        if (route->exit != hop.source) {
            visit(Hop{hop.source, route->exit, hop.bytes, false});
        }
        visit(Hop{route->exit, route->landing, hop.bytes, true});
        if (route->landing != hop.destination) {
            visit(Hop{route->landing, hop.destination, hop.bytes, false});
        }
    };
}

}  // namespace

Traffic::Traffic(const Cluster& cluster) : Traffic{cluster.gpus()} {
    if (cluster.fabric().has_spine()) {
        pods_.resize(cluster.pods());
        for (std::uint32_t rank = 0; rank < cluster.gpus(); ++rank) {
            pod_of_.push_back(cluster.pod_of(cluster.domain_of(RankId{rank})));
        }
    }
}

std::uint64_t Traffic::network_bytes() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& port : ports_) {
        sum += port.nic_out;
    }
    return sum;
}

std::uint64_t Traffic::nvlink_bytes() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& port : ports_) {
        sum += port.nvlink_out;
    }
    return sum;
}

void Traffic::add(const Traffic& other) {
    for (std::size_t rank = 0; rank < ports_.size(); ++rank) {
        ports_[rank].nic_out += other.ports_[rank].nic_out;
        ports_[rank].nic_in += other.ports_[rank].nic_in;
        ports_[rank].nvlink_out += other.ports_[rank].nvlink_out;
        ports_[rank].nvlink_in += other.ports_[rank].nvlink_in;
    }
    for (std::size_t pod = 0; pod < std::min(pods_.size(), other.pods_.size()); ++pod) {
        pods_[pod].up += other.pods_[pod].up;
        pods_[pod].down += other.pods_[pod].down;
    }
}

void Traffic::add_hop(const Hop& hop) {
    auto& from = ports_[hop.source.index()];
    auto& to = ports_[hop.destination.index()];
    (hop.is_network ? from.nic_out : from.nvlink_out) += hop.bytes;
    (hop.is_network ? to.nic_in : to.nvlink_in) += hop.bytes;
    if (!pods_.empty() && pod_of_[hop.source.index()] != pod_of_[hop.destination.index()]) {
        pods_[pod_of_[hop.source.index()]].up += hop.bytes;
        pods_[pod_of_[hop.destination.index()]].down += hop.bytes;
    }
}

void Traffic::add_ring(const Cluster& cluster, const std::vector<RankId>& group, CollectiveRole role,
                       std::uint64_t bytes) {
    const NicRoutes routes{cluster};
    const auto add = [&](const Hop& hop) { add_hop(hop); };
    visit_ring(cluster, routes, group, role, bytes, on_their_way(routes, add));
}

void visit_hops(const Plan& plan, const PlanStage& stage, const Cluster& cluster, const HopVisitor& visit) {
    const NicRoutes routes{cluster};
    const auto take_apart = on_their_way(routes, visit);
    visit_transfers(plan, stage, cluster, take_apart);
    visit_collectives(plan, stage, cluster, routes, take_apart);
}

std::optional<Hop> unreachable_hop(const Plan& plan, const Cluster& cluster) {
    const NicRoutes routes{cluster};
    std::optional<Hop> found;
    const auto look = [&](const Hop& hop) {
        if (!found && hop.is_network && !routes.between(hop.source, hop.destination)) {
            found = hop;
        }
    };
    for (std::size_t i = 0; !routes.is_plain() && !found && i < plan.stages.size(); ++i) {
        visit_transfers(plan, plan.stages[i], cluster, look);
        visit_collectives(plan, plan.stages[i], cluster, routes, look);
    }
    return found;
}

Traffic transfer_traffic(const Plan& plan, const PlanStage& stage, const Cluster& cluster) {
    Traffic traffic{cluster};
    const NicRoutes routes{cluster};
    const auto add = [&](const Hop& hop) { traffic.add_hop(hop); };
    visit_transfers(plan, stage, cluster, on_their_way(routes, add));
    return traffic;
}

Traffic collective_traffic(const Plan& plan, const PlanStage& stage, const Cluster& cluster) {
    Traffic traffic{cluster};
    const NicRoutes routes{cluster};
    const auto add = [&](const Hop& hop) { traffic.add_hop(hop); };
    visit_collectives(plan, stage, cluster, routes, on_their_way(routes, add));
    return traffic;
}

Traffic traffic(const Plan& plan, const Cluster& cluster) {
    Traffic sum{cluster};
    for (const auto& stage : plan.stages) {
        sum.add(transfer_traffic(plan, stage, cluster));
        sum.add(collective_traffic(plan, stage, cluster));
    }
    return sum;
}

Bytes logical_bytes(const Plan& plan, const Workload& workload) {
    return plan.method == Method::kGatherBroadcast ? workload.payload_bytes() * 2 : workload.delivered_bytes();
}

}  // namespace refit
