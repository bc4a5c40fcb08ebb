// SPDX-License-Identifier: Apache-2.0
#include "gather.hpp"

#include <algorithm>
#include <string>

namespace refit::proof {
namespace {

/// What both boxes have, axis by axis: the checker's own, apart from the planner's.
std::optional<Box> common_part(const Box& a, const Box& b) {
    auto part = a;
    for (std::size_t axis = 0; axis < a.axes().size(); ++axis) {
        const auto first = std::max(a.axes()[axis].begin, b.axes()[axis].begin);
        const auto last = std::min(a.axes()[axis].end, b.axes()[axis].end);
        if (last <= first) {
            return std::nullopt;
        }
        part = part.with(axis, {first, last});
    }
    return part;
}

/// For each shard of the source, whether a rank has it.
using ShardSet = std::vector<bool>;

class GatherFollower {
public:
    GatherFollower(FaultLog& log, const Plan& plan, const ClassFacts& facts, std::uint32_t train_gpus,
                   std::vector<Arrivals>& arrivals, MovedBytes& moved)
        : log_{log}, plan_{plan}, facts_{facts}, train_gpus_{train_gpus}, arrivals_{arrivals}, moved_{moved} {
        const auto shards = facts.entry().source.shards().size();
        for (std::uint32_t slice = 0; slice < facts.entry().slices.size(); ++slice) {
            auto& ranks = has_.emplace_back(train_gpus, ShardSet(shards, false));
            for (std::uint32_t rank = 0; rank < train_gpus; ++rank) {
                if (const auto shard = facts.held_shard(rank, slice); shard != ClassFacts::kNone) {
                    ranks[rank][shard] = true;
                }
            }
        }
    }

    void follow(std::size_t stage, std::size_t position) {
        const auto& collective = plan_.stages[stage].collectives[position];
        stage_ = stage;
        auto& moved = moved_[{stage, position}];
        const auto& groups = plan_.groups[collective.groups];
        moved.resize(groups.size());
        for (std::size_t i = 0; i < groups.size(); ++i) {
            if (collective.role == CollectiveRole::kWeightBroadcast) {
                moved[i] += broadcast_weights(groups[i], collective.parts);
            } else if (are_trainers(groups[i])) {
                moved[i] += collective.role == CollectiveRole::kPipelineBroadcast ? broadcast_shards(groups[i])
                                                                                  : gather(groups[i]);
            }
        }
    }

private:
    bool are_trainers(const std::vector<RankId>& group) {
        for (const auto rank : group) {
            if (rank.index() >= train_gpus_) {
                log_.add("gather-member", {.stage = stage_, .parameter = facts_.index(), .rank = rank.index()}, "no trainer, but in a gather");
                return false;
            }
        }
        return true;
    }

    /// Of the tensors of a slice; copies of another slice's tensors are the same tensors, and cost nothing.
    [[nodiscard]] Bytes bytes_of(const ShardSet& shards, std::uint32_t slice) const {
        const auto& stages = facts_.entry().slices[slice];
        Bytes sum;
        for (std::size_t i = 0; i < shards.size() && !stages.is_copy; ++i) {
            sum += Bytes{shards[i] ? facts_.entry().source.shards()[i].elements() : 0};
        }
        return sum * facts_.entry().element_bytes() * stages.layers;
    }

    static void join(ShardSet& shards, const ShardSet& more) {
        for (std::size_t i = 0; i < shards.size(); ++i) {
            shards[i] = shards[i] || more[i];
        }
    }

    Bytes broadcast_shards(const std::vector<RankId>& group) {
        Bytes sum;
        const auto root = group.front().index();
        for (const auto slice : facts_.slices_from(facts_.train_stage_of(root))) {
            const auto shards = has_[slice][root];
            sum += bytes_of(shards, slice);
            for (const auto rank : group) {
                join(has_[slice][rank.index()], shards);
            }
        }
        return sum;
    }

    Bytes gather(const std::vector<RankId>& group) {
        Bytes sum;
        for (std::uint32_t slice = 0; slice < has_.size(); ++slice) {
            auto shards = has_[slice][group.front().index()];
            for (const auto rank : group) {
                join(shards, has_[slice][rank.index()]);
            }
            sum += bytes_of(shards, slice);
            for (const auto rank : group) {
                has_[slice][rank.index()] = shards;
            }
        }
        return sum;
    }

    /// All tensors of the class, or the parts that are of it.
    Bytes broadcast_weights(const std::vector<RankId>& group, const std::vector<MessagePart>& parts) {
        Bytes sum;
        if (parts.empty()) {
            for (std::uint32_t slice = 0; slice < has_.size(); ++slice) {
                const Region all{{0, facts_.entry().slices[slice].layers}, Box::whole(facts_.entry().source.shape())};
                sum += broadcast_part(group, slice, all);
            }
            return sum;
        }
        for (const auto& part : parts) {
            if (part.parameter == facts_.index()) {
                const Region region{{part.first_tensor, std::uint64_t{part.first_tensor} + part.tensors}, part.box};
                sum += broadcast_part(group, part.slice, region);
            }
        }
        return sum;
    }

    /// Gives each generator of the group what it wants of a region. The root must have all of the region that is wanted;
    /// copies of another slice's tensors are the same tensors, and cost nothing.
    Bytes broadcast_part(const std::vector<RankId>& group, std::uint32_t slice, const Region& region) {
        const auto root = group.front().index();
        std::vector<Box> known;
        for (std::size_t i = 0; root < train_gpus_ && i < has_[slice][root].size(); ++i) {
            const auto& boxes = facts_.entry().source.shards()[i].boxes;
            known.insert(known.end(), has_[slice][root][i] ? boxes.begin() : boxes.end(), boxes.end());
        }
        give_own_boxes(group, slice, region, known);
        return facts_.entry().slices[slice].is_copy ? Bytes{} : Bytes{region.elements()} * facts_.entry().element_bytes();
    }

    void give_own_boxes(const std::vector<RankId>& group, std::uint32_t slice, const Region& carried, const std::vector<Box>& known) {
        std::map<std::uint32_t, std::vector<std::uint32_t>> regions;
        for (const auto rank : group) {
            const auto shard = facts_.wanted_shard(rank.index(), slice);
            if (shard == ClassFacts::kNone) {
                continue;
            }
            const auto [found, is_new] = regions.try_emplace(shard);
            for (const auto& wanted : is_new ? facts_.destination(slice).shards()[shard].boxes : std::vector<Box>{}) {
                const auto box = common_part(wanted, carried.box);
                if (!box) {
                    continue;
                }
                const Region region{carried.tensors, *box};
                found->second.push_back(arrivals_[slice].region(stage_, region));
                if (!covers(known, *box)) {
                    log_.add("source",
                             {.stage = stage_, .parameter = facts_.index(), .slice = slice, .rank = group.front().index(), .region = region},
                             "broadcast by a root that has not gathered all of it");
                }
            }
            for (const auto region : found->second) {
                arrivals_[slice].add(rank.index(), region);
            }
        }
    }

    FaultLog& log_;
    const Plan& plan_;
    const ClassFacts& facts_;
    std::uint32_t train_gpus_;
    std::vector<Arrivals>& arrivals_;
    MovedBytes& moved_;
    std::size_t stage_ = 0;
    std::vector<std::vector<ShardSet>> has_;  ///< By slice and trainer.
};

}  // namespace

void follow_gathers(FaultLog& log, const Plan& plan, const ClassFacts& facts, std::uint32_t train_gpus,
                    std::vector<Arrivals>& arrivals, MovedBytes& moved) {
    GatherFollower follower{log, plan, facts, train_gpus, arrivals, moved};
    for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
        const auto& collectives = plan.stages[stage].collectives;
        for (std::size_t i = 0; i < collectives.size(); ++i) {
            if (!is_among_replicas(collectives[i].role) &&
                std::ranges::binary_search(collectives[i].parameters, facts.index())) {
                follower.follow(stage, i);
            }
        }
    }
}

void check_moved_bytes(FaultLog& log, const Plan& plan, const MovedBytes& moved) {
    for (const auto& [place, by_group] : moved) {
        const auto& collective = plan.stages[place.first].collectives[place.second];
        const bool is_exact = collective.role == CollectiveRole::kWeightBroadcast;
        for (std::size_t i = 0; i < by_group.size(); ++i) {
            const Bytes said{collective.bytes[i]};
            if (said < by_group[i] || (is_exact && said != by_group[i])) {
                log.add("collective-bytes",
                        {.stage = place.first, .rank = plan.groups[collective.groups][i].front().index()},
                        "its group says " + std::to_string(said.count()) + " bytes and moves " +
                            std::to_string(by_group[i].count()));
            }
        }
    }
}

}  // namespace refit::proof
