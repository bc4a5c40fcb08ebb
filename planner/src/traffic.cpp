// SPDX-License-Identifier: Apache-2.0
#include "refit/traffic.hpp"

#include <algorithm>

#include "refit/ring.hpp"

namespace refit {
namespace {

/// Part `index` of `count` nearly equal parts of `bytes`, which sum to it.
std::uint64_t share(std::uint64_t bytes, std::uint64_t count, std::uint64_t index) {
    return bytes / count + (index < bytes % count ? 1 : 0);
}

/// Each hop of a ring collective of one group. The ring enters each domain once, at the root's first. Where it crosses
/// domains it runs as several channels, at most one a member of the smallest domain part, each on a NIC of its own
/// (replica collectives: one channel).
/// Source: NCCL's ring channels, one a NIC; docs/cost_model.md.
template <class Visit>
void visit_ring(const Cluster& cluster, const std::vector<RankId>& group, CollectiveRole role, std::uint64_t bytes,
                const Visit& visit) {
    const auto domains = split_by_domain(cluster, group);
    const auto ranks = group.size();
    const bool crosses = domains.size() > 1;
    const auto channels = is_among_replicas(role) || !crosses ? std::size_t{1} : fewest_members(domains);
    // A hop carries the whole message of a broadcast, and of an all-gather all but what its receiver contributed.
    const auto hop_bytes = [&](std::size_t receiver) {
        return is_broadcast(role) ? bytes : bytes - share(bytes, ranks, receiver);
    };
    const std::size_t hops = is_broadcast(role) ? ranks - 1 : ranks;
    for (std::size_t channel = 0; channel < channels; ++channel) {
        const auto member_of = [&](const std::vector<RankId>& members) {
            return channel * members.size() / channels;
        };
        std::size_t position = 0;
        for (std::size_t d = 0; d < domains.size(); ++d) {
            const auto& members = domains[d];
            const auto entry = d == 0 ? 0 : member_of(members);
            for (std::size_t i = 0; i < members.size() && position < hops; ++i, ++position) {
                const auto amount = share(hop_bytes((position + 1) % ranks), channels, channel);
                const auto from = members[(entry + i) % members.size()];
                if (i + 1 < members.size()) {
                    visit({from, members[(entry + i + 1) % members.size()], amount, false});
                    continue;
                }
                const auto& next = domains[(d + 1) % domains.size()];
                if (crosses) {
                    visit({members[member_of(members)], next[member_of(next)], amount, true});
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
void visit_collectives(const Plan& plan, const PlanStage& stage, const Cluster& cluster, const Visit& visit) {
    for (const auto& collective : stage.collectives) {
        const auto& groups = plan.groups[collective.groups];
        for (std::size_t i = 0; i < groups.size(); ++i) {
            visit_ring(cluster, groups[i], collective.role, collective.bytes[i], visit);
        }
    }
}

}  // namespace

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
}

void Traffic::add_hop(const Hop& hop) {
    auto& from = ports_[hop.source.index()];
    auto& to = ports_[hop.destination.index()];
    (hop.is_network ? from.nic_out : from.nvlink_out) += hop.bytes;
    (hop.is_network ? to.nic_in : to.nvlink_in) += hop.bytes;
}

void Traffic::add_ring(const Cluster& cluster, const std::vector<RankId>& group, CollectiveRole role,
                       std::uint64_t bytes) {
    visit_ring(cluster, group, role, bytes, [&](const Hop& hop) { add_hop(hop); });
}

void visit_hops(const Plan& plan, const PlanStage& stage, const Cluster& cluster, const HopVisitor& visit) {
    visit_transfers(plan, stage, cluster, visit);
    visit_collectives(plan, stage, cluster, visit);
}

Traffic transfer_traffic(const Plan& plan, const PlanStage& stage, const Cluster& cluster) {
    Traffic traffic{cluster.gpus()};
    visit_transfers(plan, stage, cluster, [&](const Hop& hop) { traffic.add_hop(hop); });
    return traffic;
}

Traffic collective_traffic(const Plan& plan, const PlanStage& stage, const Cluster& cluster) {
    Traffic traffic{cluster.gpus()};
    visit_collectives(plan, stage, cluster, [&](const Hop& hop) { traffic.add_hop(hop); });
    return traffic;
}

Traffic traffic(const Plan& plan, const Cluster& cluster) {
    Traffic sum{cluster.gpus()};
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
