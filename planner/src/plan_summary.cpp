// SPDX-License-Identifier: Apache-2.0
#include "refit/plan_summary.hpp"

#include <algorithm>
#include <tuple>

namespace refit {
namespace {

std::vector<PairBytes> merged(std::vector<PairBytes> hops) {
    const auto ends = [](const PairBytes& pair) { return std::tuple{pair.source, pair.destination}; };
    std::ranges::sort(hops, [&](const auto& a, const auto& b) { return ends(a) < ends(b); });
    std::vector<PairBytes> pairs;
    for (const auto& hop : hops) {
        if (!pairs.empty() && ends(pairs.back()) == ends(hop)) {
            pairs.back().bytes += hop.bytes;
            ++pairs.back().hops;
        } else {
            pairs.push_back(hop);
        }
    }
    std::ranges::stable_sort(pairs, std::greater{}, &PairBytes::bytes);
    return pairs;
}

std::vector<ClassMoves> class_moves(const Workload& workload) {
    std::vector<ClassMoves> classes;
    for (const auto& entry : workload.classes()) {
        auto& moves = classes.emplace_back();
        moves.name = entry.parameter.name;
        moves.tensors = entry.parameter.tensors();
        moves.bytes = entry.parameter.bytes();
        for (const auto& slice : entry.slices) {
            for (const auto& shard : entry.destinations[slice.generate_stage].shards()) {
                moves.delivered += Bytes{shard.elements()} * entry.element_bytes() * shard.members.size() * slice.layers;
            }
        }
    }
    return classes;
}

void add_relays(const RelayTable& relays, const Workload& workload, PlanSummary& summary) {
    std::vector<std::uint64_t> hops(relays.messages.size(), 0);
    for (const auto message : relays.message) {
        ++hops[message];
    }
    for (std::size_t i = 0; i < relays.messages.size(); ++i) {
        const auto& message = relays.messages[i];
        for (auto part = message.first_part; part < message.first_part + message.parts; ++part) {
            const auto& entry = relays.parts[part];
            summary.classes[entry.parameter].point_to_point +=
                Bytes{entry.box.volume()} * workload.classes()[entry.parameter].element_bytes() * entry.tensors * hops[i];
        }
    }
    summary.messages += relays.messages.size();
}

void add_stage(const Plan& plan, const PlanStage& stage, const Workload& workload, PlanSummary& summary) {
    for (const auto& use : stage.transfers) {
        const auto& block = plan.blocks[use.block];
        for (const auto box : block.box) {
            summary.classes[block.parameter].point_to_point += Bytes{block.boxes[box].volume()} * block.element_bytes * use.tensors;
        }
        summary.messages += block.size() * use.tensors;
    }
    for (const auto& collective : stage.collectives) {
        for (const auto parameter : collective.parameters) {
            summary.classes[parameter].is_gathered |= stage.kind == StageKind::kBroadcast;
        }
    }
    add_relays(stage.relays, workload, summary);
}

}  // namespace

PlanSummary summarise(const Plan& plan, const Workload& workload, const Cluster& cluster) {
    PlanSummary summary;
    summary.classes = class_moves(workload);
    Traffic traffic{cluster};
    std::vector<PairBytes> hops;
    for (const auto& stage : plan.stages) {
        visit_hops(plan, stage, cluster, [&](const Hop& hop) {
            traffic.add_hop(hop);
            hops.push_back({hop.source, hop.destination, hop.bytes, 1, hop.is_network});
        });
        add_stage(plan, stage, workload, summary);
    }
    summary.hops = hops.size();
    summary.ranks = traffic.ports();
    summary.domains.resize(cluster.domains());
    for (std::uint32_t rank = 0; rank < cluster.gpus(); ++rank) {
        auto& domain = summary.domains[cluster.domain_of(RankId{rank}).index()];
        domain.nic_out += summary.ranks[rank].nic_out;
        domain.nic_in += summary.ranks[rank].nic_in;
        domain.nvlink_out += summary.ranks[rank].nvlink_out;
        domain.nvlink_in += summary.ranks[rank].nvlink_in;
    }
    summary.pairs = merged(std::move(hops));
    return summary;
}

}  // namespace refit
