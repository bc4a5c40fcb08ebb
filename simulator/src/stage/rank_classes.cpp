// SPDX-License-Identifier: Apache-2.0
#include "refit/rank_classes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "../colour.hpp"
#include "refit/nic_routes.hpp"
#include "refit/ring.hpp"
#include "refit/traffic.hpp"

namespace refit {
namespace {

template <class... Values>
constexpr Colour mixed_all(Colour first, Values... rest) noexcept {
    auto colour = mixed(first);
    ((colour = mixed(colour ^ static_cast<Colour>(rest))), ...);
    return colour;
}

/// Bytes of one tensor in a transfer.
std::vector<std::uint64_t> box_bytes(const TransferBlock& block) {
    std::vector<std::uint64_t> bytes;
    std::ranges::transform(block.boxes, std::back_inserter(bytes), [&](const Box& box) {
        return box.volume() * block.element_bytes;
    });
    return bytes;
}

class Refinement {
public:
    Refinement(const Plan& plan,
               std::span<const std::uint32_t> stages,
               const Cluster& cluster,
               const Fabric& fabric,
               std::uint32_t trainers_per_stage,
               ReplicaRingReading replica_ring)
        : plan_{plan}, stages_{stages}, cluster_{cluster} {
        colours_.resize(cluster.gpus());
        const auto kind_of = [&](std::uint32_t stage) { return plan.stages[stage].kind; };
        const bool has_roots = std::ranges::any_of(stages, [&](std::uint32_t stage) {
            return kind_of(stage) == StageKind::kBroadcast && plan.stages[stage].collectives.size() > 1;
        });
        // Without a broadcast each pipeline stage may gather for itself.
        const bool has_gather_alone = std::ranges::any_of(
            stages, [&](std::uint32_t stage) { return kind_of(stage) == StageKind::kGather; }) &&
            std::ranges::none_of(stages, [&](std::uint32_t stage) { return kind_of(stage) == StageKind::kBroadcast; });
        for (std::uint32_t rank = 0; rank < cluster.gpus(); ++rank) {
            const auto& ports = fabric.ports(rank);
            colours_[rank] = mixed_all(cluster.is_trainer(RankId{rank}) ? 1 : 2,
                                       std::bit_cast<Colour>(ports.nic_out),
                                       std::bit_cast<Colour>(ports.nic_in),
                                       std::bit_cast<Colour>(ports.nvlink_out),
                                       std::bit_cast<Colour>(ports.nvlink_in),
                                       fabric.pod_of(fabric.domain_of(rank)),
                                       has_roots || has_gather_alone ? rank / trainers_per_stage : 0);
        }
        for (const auto stage : stages) {
            for (const auto& collective : plan.stages[stage].collectives) {
                collectives_.push_back({&collective, hashed_shares(ring_shares(plan, collective, cluster, replica_ring))});
            }
        }
        std::ranges::transform(plan.blocks, std::back_inserter(bytes_), box_bytes);
    }

    std::vector<std::uint32_t> run() {
        auto classes = numbered();
        for (std::size_t before = 0; before != classes_;) {
            before = classes_;
            refine();
            classes = numbered();
        }
        return classes;
    }

private:
    struct HashedCollective {
        const Collective* collective;
        std::vector<Colour> of_rank;
    };

    /// Shares to a millionth: the odd byte of an uneven division makes no other class.
    static std::vector<Colour> hashed_shares(const RingShares& shares) {
        std::vector<Colour> hashed;
        for (const auto& ports : shares.of_rank) {
            Colour colour = 0;
            for (const auto share : ports) {
                colour = mixed_all(colour, static_cast<Colour>(std::llround(share * 1e6)));
            }
            hashed.push_back(colour);
        }
        return hashed;
    }

    void refine() {
        next_.assign(colours_.size(), 0);
        Colour number = 0;
        for (const auto& entry : collectives_) {
            add_rings(entry, ++number);
        }
        for (const auto stage : stages_) {
            for (const auto& use : plan_.stages[stage].transfers) {
                add_transfers(use, ++number);
            }
        }
        for (std::size_t rank = 0; rank < colours_.size(); ++rank) {
            colours_[rank] = mixed_all(colours_[rank], next_[rank]);
        }
    }

    void add_rings(const HashedCollective& entry, Colour number) {
        const auto& groups = plan_.groups[entry.collective->groups];
        for (std::size_t g = 0; g < groups.size(); ++g) {
            Colour together = 0;
            for (const auto rank : groups[g]) {
                together += mixed_all(colours_[rank.index()], entry.of_rank[rank.index()]);
            }
            together = mixed_all(together, number, entry.collective->bytes[g]);
            for (const auto rank : groups[g]) {
                next_[rank.index()] += mixed_all(together, entry.of_rank[rank.index()]);
            }
        }
    }

    void add_transfers(const TransferUse& use, Colour number) {
        const auto& block = plan_.blocks[use.block];
        for (std::size_t i = 0; i < block.size(); ++i) {
            const auto from = use.first_source.index() + block.source[i];
            const auto to = cluster_.generator(block.destination[i]).index();
            if (from == to) {
                continue;
            }
            const bool is_network = cluster_.domain_of(RankId{from}) != cluster_.domain_of(RankId{to});
            const auto message = (bytes_[use.block][block.box[i]] * 2 + (is_network ? 1 : 0)) ^ mixed(number);
            next_[from] += mixed(mixed(message) ^ colours_[to]);
            next_[to] += mixed(mixed(message + 1) ^ colours_[from]);
        }
    }

    std::vector<std::uint32_t> numbered() {
        std::unordered_map<Colour, std::uint32_t> numbers;
        std::vector<std::uint32_t> classes;
        for (const auto colour : colours_) {
            classes.push_back(
                numbers.try_emplace(colour, static_cast<std::uint32_t>(numbers.size())).first->second);
        }
        classes_ = numbers.size();
        return classes;
    }

    const Plan& plan_;
    std::span<const std::uint32_t> stages_;
    const Cluster& cluster_;
    std::vector<Colour> colours_;
    std::vector<Colour> next_;
    std::vector<HashedCollective> collectives_;
    std::vector<std::vector<std::uint64_t>> bytes_;  ///< By block and box.
    std::size_t classes_ = 0;
};

}  // namespace

namespace {

PortShares shares_of(const PortBytes& ports, double whole) {
    return {static_cast<double>(ports.nic_out) / whole,
            static_cast<double>(ports.nic_in) / whole,
            static_cast<double>(ports.nvlink_out) / whole,
            static_cast<double>(ports.nvlink_in) / whole,
            0.0,
            0.0};
}

/// Of a traffic that holds one group's ring alone.
RingDetours detours_of(const Traffic& traffic, const std::vector<RankId>& group, double whole) {
    RingDetours detours;
    for (std::uint32_t rank = 0; rank < traffic.ports().size(); ++rank) {
        const bool is_idle = traffic.ports()[rank] == PortBytes{};
        if (!is_idle && std::ranges::find(group, RankId{rank}) == group.end()) {
            detours.helpers.emplace_back(RankId{rank}, shares_of(traffic.ports()[rank], whole));
        }
    }
    for (const auto& pod : traffic.pods()) {
        detours.up.push_back(static_cast<double>(pod.up) / whole);
        detours.down.push_back(static_cast<double>(pod.down) / whole);
    }
    return detours;
}

/// The same collective among ranks whose rings run over every NIC.
CollectiveRole like_other_rings(CollectiveRole role) {
    switch (role) {
        case CollectiveRole::kReplicaAllGather:
            return CollectiveRole::kTensorAllGather;
        case CollectiveRole::kReplicaBroadcast:
            return CollectiveRole::kPipelineBroadcast;
        default:
            return role;
    }
}

}  // namespace

RingShares ring_shares(const Plan& plan,
                       const Collective& collective,
                       const Cluster& cluster,
                       ReplicaRingReading replica_ring) {
    // Large enough that the odd byte of a division does not show in a share.
    constexpr std::uint64_t kMessage = std::uint64_t{1} << 50U;
    RingShares shares;
    Traffic traffic{cluster};
    const bool is_plain = cluster.fabric().is_plain();
    const auto& groups = plan.groups[collective.groups];
    const auto role = replica_ring == ReplicaRingReading::kEveryNic ? like_other_rings(collective.role) : collective.role;
    shares.of_rank.resize(cluster.gpus(), PortShares{});
    for (std::size_t g = 0; g < groups.size(); ++g) {
        const auto ranks = static_cast<double>(groups[g].size());
        const auto part = is_broadcast(collective.role) ? 1.0 : (ranks - 1.0) / ranks;
        shares.wire_bytes.push_back(static_cast<double>(collective.bytes[g]) * part);
        shares.crosses_domains.push_back(split_by_domain(cluster, groups[g]).size() > 1);
        if (!is_plain) {
            traffic = Traffic{cluster};
            shares.detours.emplace_back();
        }
        if (groups[g].size() < 2) {
            continue;
        }
        traffic.add_ring(cluster, groups[g], role, kMessage);
        const auto whole = static_cast<double>(kMessage) * part;
        for (const auto rank : groups[g]) {
            shares.of_rank[rank.index()] = shares_of(traffic.ports()[rank.index()], whole);
        }
        if (!is_plain) {
            shares.detours.back() = detours_of(traffic, groups[g], whole);
        }
    }
    return shares;
}

RankClasses::RankClasses(std::vector<std::uint32_t> class_of) : class_of_{std::move(class_of)} {
    members_.resize(class_of_.empty() ? 0 : *std::ranges::max_element(class_of_) + 1);
    for (std::uint32_t rank = 0; rank < class_of_.size(); ++rank) {
        members_[class_of_[rank]].emplace_back(rank);
    }
}

RankClasses RankClasses::make(const Plan& plan,
                              std::span<const std::uint32_t> stages,
                              const Cluster& cluster,
                              const Fabric& fabric,
                              std::uint32_t trainers_per_stage,
                              ReplicaRingReading replica_ring) {
    const bool has_relays = std::ranges::any_of(
        stages, [&](std::uint32_t stage) { return plan.stages[stage].relays.size() > 0; });
    if (has_relays || !NicRoutes{cluster}.is_plain() || cluster.fabric().has_spine()) {
        std::vector<std::uint32_t> single(cluster.gpus());
        std::iota(single.begin(), single.end(), 0U);
        return RankClasses{std::move(single)};
    }
    return RankClasses{Refinement{plan, stages, cluster, fabric, trainers_per_stage, replica_ring}.run()};
}

}  // namespace refit
