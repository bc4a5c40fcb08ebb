// SPDX-License-Identifier: Apache-2.0
#include "builder.hpp"

#include <algorithm>
#include <utility>

namespace refit::m2n {
namespace {

/// Fills a plan shard by shard, so that what one shard needs is worked out once for all its ranks.
class Builder {
public:
    Builder(M2nPlan& plan, const ShardOverlap& overlap, const ReplicaMatch& match)
        : plan_{plan}, overlap_{overlap}, targets_(plan.source.ranks()) {
        const auto& side = plan.destination;
        plan.destinations.resize(side.ranks());
        for (std::uint32_t shard = 0; shard < side.shards; ++shard) {
            for (std::uint32_t replica = 0; replica < side.replicas; ++replica) {
                auto& entry = at(shard, replica);
                entry.rank = side.rank_of(shard, replica);
                entry.shard = shard;
                entry.replica = replica;
                entry.source_replica = match.source_of(replica);
            }
        }
    }

    /// Appends the pairs of a destination shard and returns where they lie.
    M2nRange add_pairs(std::uint32_t shard) {
        const auto begin = static_cast<std::uint32_t>(plan_.pairs.size());
        const auto sources = overlap_.sources_of(shard);
        for (auto source = sources.begin; source < sources.end; ++source) {
            plan_.pairs.push_back(overlap_.pair(source, shard));
        }
        return {begin, static_cast<std::uint32_t>(plan_.pairs.size())};
    }

    void inject(std::uint32_t pair, std::uint32_t source_replica, std::uint32_t replica) {
        const auto source = plan_.source.rank_of(plan_.pairs[pair].source_shard, source_replica);
        const auto destination = plan_.destination.rank_of(plan_.pairs[pair].destination_shard, replica);
        targets_[source.index() - plan_.source.first_rank.index()].push_back({source, destination, pair});
    }

    M2nDestination& at(std::uint32_t shard, std::uint32_t replica) {
        const auto rank = plan_.destination.rank_of(shard, replica);
        return plan_.destinations[rank.index() - plan_.destination.first_rank.index()];
    }

    void finish() {
        for (const auto& list : targets_) {
            plan_.injections.insert(plan_.injections.end(), list.begin(), list.end());
        }
    }

private:
    M2nPlan& plan_;
    const ShardOverlap& overlap_;
    std::vector<std::vector<M2nInjection>> targets_;  ///< By source rank.
};

/// Pairs that wait at place `local` of a group: its own slot's, at the last place those of all slots that
/// have run together, and none beyond.
M2nRange awaited(M2nRange pairs, std::uint32_t first_slots, std::uint32_t slots, std::uint32_t local) {
    if (local >= slots) {
        return {pairs.begin, pairs.begin};
    }
    const auto first = even_part(pairs.size(), first_slots, local);
    const auto end = local + 1 == slots ? pairs.size() : first.end;
    return {pairs.begin + first.begin, pairs.begin + end};
}

/// One destination shard fed by one source replica.
void add_chain(Builder& builder,
               const M2nSide& side,
               M2nRange pairs,
               std::uint32_t shard,
               std::uint32_t source,
               const Arrangement& arrangement) {
    const auto groups = domain_groups(side, shard, arrangement.match.targets_of(source), arrangement);
    const auto& first = groups.front();
    const auto slots = first.replicas.size();
    for (std::uint32_t i = 0; i < pairs.size(); ++i) {
        builder.inject(pairs.begin + i, source, first.replicas.begin + even_part_of(pairs.size(), slots, i));
    }
    for (std::size_t index = 0; index < groups.size(); ++index) {
        const auto& group = groups[index];
        const auto next = next_group(groups, index, arrangement);
        for (auto replica = group.replicas.begin; replica < group.replicas.end; ++replica) {
            if (arrangement.match.source_of(replica) != source) {
                continue;
            }
            auto& entry = builder.at(shard, replica);
            const auto local = replica - group.replicas.begin;
            entry.domain = group.domain;
            entry.sources = awaited(pairs, slots, group.slots, local);
            entry.is_direct = index == 0 && entry.sources.size() > 0;
            entry.domain_replicas = group.replicas;
            if (next) {
                const auto& target = groups[*next].replicas;
                const auto open = std::min(group.slots, target.size());
                entry.ring_next = side.rank_of(shard, target.begin + std::min(local, open - 1));
            }
        }
    }
}

bool is_off_rail(const M2nSide& side,
                 std::uint32_t shard,
                 const DomainGroup& from,
                 const DomainGroup& to,
                 Domains domains) {
    const auto rail_of = [&](std::uint32_t replica) { return domains.rail_of(side.rank_of(shard, replica)); };
    for (std::uint32_t local = 0; local < from.replicas.size(); ++local) {
        if (rail_of(from.replicas.begin + local) !=
            rail_of(to.replicas.begin + std::min(local, to.replicas.size() - 1))) {
            return true;
        }
    }
    return false;
}

}  // namespace

std::vector<DomainGroup> domain_groups(const M2nSide& destination,
                                       std::uint32_t shard,
                                       M2nRange targets,
                                       const Arrangement& arrangement) {
    std::vector<DomainGroup> groups;
    for (auto replica = targets.begin; replica < targets.end; ++replica) {
        const auto domain = arrangement.domains.of(destination.rank_of(shard, replica));
        if (groups.empty() || groups.back().domain != domain) {
            groups.push_back({domain, {replica, replica}, 0});
        }
        ++groups.back().replicas.end;
    }
    // Slots that ran together in a narrow domain stay so: a leader has one next rank.
    const auto step = arrangement.stride ? arrangement.stride->domains : 1;
    auto slots = groups.front().replicas.size();
    for (auto& group : groups) {
        if ((group.domain - groups.front().domain) % step == 0) {
            slots = std::min(slots, group.replicas.size());
        }
        group.slots = slots;
    }
    return groups;
}

std::optional<std::size_t> next_group(std::span<const DomainGroup> groups,
                                      std::size_t index,
                                      const Arrangement& arrangement) {
    const auto step = arrangement.stride ? arrangement.stride->domains : 1;
    for (auto next = index + 1; next < groups.size(); ++next) {
        if ((groups[next].domain - groups[index].domain) % step == 0) {
            return next;
        }
    }
    return std::nullopt;
}

bool has_hop_off_rail(const M2nSide& source, const M2nSide& destination, const Arrangement& arrangement) {
    for (std::uint32_t replica = 0; replica < source.replicas; ++replica) {
        const auto targets = arrangement.match.targets_of(replica);
        for (std::uint32_t shard = 0; targets.size() > 0 && shard < destination.shards; ++shard) {
            const auto groups = domain_groups(destination, shard, targets, arrangement);
            for (std::size_t index = 0; index < groups.size(); ++index) {
                const auto next = next_group(groups, index, arrangement);
                // M2N looks just one stride on; a ring that skips a domain passes.
                if (next && (!arrangement.stride ||
                             groups[*next].domain == groups[index].domain + arrangement.stride->domains)) {
                    if (is_off_rail(destination, shard, groups[index], groups[*next], arrangement.domains)) {
                        return true;
                    }
                }
            }
        }
    }
    return false;
}

void add_hierarchical(M2nPlan& plan, const ShardOverlap& overlap, const Arrangement& arrangement) {
    Builder builder{plan, overlap, arrangement.match};
    for (std::uint32_t shard = 0; shard < plan.destination.shards; ++shard) {
        const auto pairs = builder.add_pairs(shard);
        for (std::uint32_t source = 0; source < plan.source.replicas; ++source) {
            if (arrangement.match.targets_of(source).size() > 0) {
                add_chain(builder, plan.destination, pairs, shard, source, arrangement);
            }
        }
    }
    builder.finish();
}

void add_flat(M2nPlan& plan, const ShardOverlap& overlap, const ReplicaMatch& match) {
    Builder builder{plan, overlap, match};
    for (std::uint32_t shard = 0; shard < plan.destination.shards; ++shard) {
        const auto pairs = builder.add_pairs(shard);
        for (auto pair = pairs.begin; pair < pairs.end; ++pair) {
            for (std::uint32_t source = 0; source < plan.source.replicas; ++source) {
                const auto targets = match.targets_of(source);
                for (auto replica = targets.begin; replica < targets.end; ++replica) {
                    builder.inject(pair, source, replica);
                }
            }
        }
        for (std::uint32_t replica = 0; replica < plan.destination.replicas; ++replica) {
            auto& entry = builder.at(shard, replica);
            entry.sources = pairs;
            entry.is_direct = true;
        }
    }
    builder.finish();
}

}  // namespace refit::m2n
