// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "refit/packs.hpp"
#include "step.hpp"

namespace refit::program {
namespace {

std::vector<std::uint32_t> ranks_of(const std::vector<RankId>& group) {
    std::vector<std::uint32_t> ranks;
    std::ranges::transform(group, std::back_inserter(ranks), [](RankId rank) { return rank.index(); });
    return ranks;
}

/// A box of a tensor that trainers gather, and broadcast, as one.
struct Piece {
    Tensor tensor;
    Box box;
    std::uint64_t bytes = 0;
};
using Pack = std::vector<Piece>;

/// A shard that a member of a group gives to those that have it not.
struct Gift {
    std::uint32_t shard = 0;
    std::uint32_t owner = 0;   ///< Its place.
    std::vector<bool> takers;  ///< By place.
};

/// What each group of each collective of a gather stage moves of the tensors of one slice.
using Script = std::vector<std::vector<std::vector<Gift>>>;

Script script_of(const Sight& sight,
                 const PlanStage& stage,
                 std::uint32_t parameter,
                 std::uint32_t slice_index) {
    const auto& entry = sight.workload.classes()[parameter];
    const auto& slice = entry.slices[slice_index];
    const auto per_stage = sight.workload.trainers_per_stage();
    const auto shards = entry.source.shards();
    std::vector<std::vector<bool>> has(sight.train_gpus, std::vector<bool>(shards.size(), false));
    for (std::size_t shard = 0; shard < shards.size(); ++shard) {
        for (const auto member : shards[shard].members) {
            has[slice.train_stage * per_stage + member][shard] = true;
        }
    }
    Script script;
    for (const auto& collective : stage.collectives) {
        auto& by_group = script.emplace_back();
        const auto& groups = sight.plan.groups[collective.groups];
        by_group.resize(groups.size());
        if (!std::ranges::binary_search(collective.parameters, parameter)) {
            continue;
        }
        for (std::size_t g = 0; g < groups.size(); ++g) {
            const auto& group = groups[g];
            const bool is_root_only = is_broadcast(collective.role);
            if (is_root_only && group.front().index() / per_stage != slice.train_stage) {
                continue;
            }
            for (std::uint32_t shard = 0; shard < shards.size(); ++shard) {
                const auto owner =
                    std::ranges::find_if(group, [&](RankId rank) { return has[rank.index()][shard]; });
                if (owner == group.end() || (is_root_only && owner != group.begin())) {
                    continue;
                }
                Gift gift{shard, static_cast<std::uint32_t>(owner - group.begin()), {}};
                for (const auto rank : group) {
                    gift.takers.push_back(!has[rank.index()][shard]);
                    has[rank.index()][shard] = true;
                }
                if (std::ranges::find(gift.takers, true) != gift.takers.end()) {
                    by_group[g].push_back(std::move(gift));
                }
            }
        }
    }
    return script;
}

/// A gather stage, and what its collectives move of each slice.
struct GatherIndex {
    const Sight sight;
    const PlanStage& stage;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Script> scripts;  ///< By class and slice.

    /// Calls use(gift, box) for what a group moves of a piece.
    template <class Use>
    void for_each_gift(std::size_t collective, std::size_t group, const Piece& piece, Use&& use) const {
        const auto& script = scripts.at({piece.tensor.parameter, piece.tensor.slice});
        const auto shards = sight.workload.classes()[piece.tensor.parameter].source.shards();
        for (const auto& gift : script[collective][group]) {
            for (const auto& held : shards[gift.shard].boxes) {
                if (const auto box = intersection(held, piece.box); box && box->volume() > 0) {
                    use(gift, *box);
                }
            }
        }
    }
};

/// Collectives of a gather stage that do not wait for each other, for one pack.
class GatherStep final : public Step {
public:
    GatherStep(std::uint32_t stage,
               std::shared_ptr<const GatherIndex> index,
               std::shared_ptr<const Pack> pack,
               const std::vector<std::size_t>& collectives)
        : Step{stage}, index_{std::move(index)}, pack_{std::move(pack)} {
        const auto& sight = index_->sight;
        std::map<std::pair<bool, std::uint32_t>, std::size_t> known;
        std::vector<Deed> deeds;
        for (const auto position : collectives) {
            const auto& collective = index_->stage.collectives[position];
            const auto& groups = sight.plan.groups[collective.groups];
            const bool is_root_only = is_broadcast(collective.role);
            for (std::size_t g = 0; g < groups.size(); ++g) {
                if (!moves_something(position, g)) {
                    continue;
                }
                const auto group = sight.groups.intern(ranks_of(groups[g]));
                const auto [found, is_new] = known.try_emplace({is_root_only, group}, deeds.size());
                if (is_new) {
                    deeds.push_back(
                        {is_root_only ? OperationKind::kBroadcast : OperationKind::kAllGather, group});
                    parts_.emplace_back();
                }
                parts_[found->second].emplace_back(position, g);
            }
        }
        set_collectives(std::move(deeds), sight.groups, sight.settings.most_operations);
    }

    void load(std::uint32_t rank, std::vector<Cargo>& cargo) const override {
        for (std::uint32_t deed = 0; deed < deeds().size(); ++deed) {
            const auto place = index_->sight.groups.place(deeds()[deed].first, rank);
            if (place == kNone) {
                continue;
            }
            for (const auto& [position, group] : parts_[deed]) {
                for (const auto& piece : *pack_) {
                    index_->for_each_gift(position, group, piece, [&](const Gift& gift, const Box& box) {
                        cargo.push_back({deed, piece.tensor, box, gift.owner, gift.takers[place], true});
                    });
                }
            }
        }
    }

private:
    [[nodiscard]] bool moves_something(std::size_t position, std::size_t group) const {
        return std::ranges::any_of(*pack_, [&](const Piece& piece) {
            bool is_moved = false;
            index_->for_each_gift(position, group, piece, [&](const Gift&, const Box&) { is_moved = true; });
            return is_moved;
        });
    }

    std::shared_ptr<const GatherIndex> index_;
    std::shared_ptr<const Pack> pack_;
    std::vector<std::vector<std::pair<std::size_t, std::size_t>>> parts_;  ///< By deed: collective, group.
};

/// The pack of each weight broadcast, at once.
class BroadcastStep final : public Step {
public:
    BroadcastStep(const Sight& sight,
                  std::uint32_t stage,
                  const std::vector<std::pair<const Collective*, std::shared_ptr<const Pack>>>& sent)
        : Step{stage}, groups_{sight.groups} {
        std::vector<Deed> deeds;
        for (const auto& [collective, pack] : sent) {
            for (const auto& group : sight.plan.groups[collective->groups]) {
                deeds.push_back({OperationKind::kBroadcast, sight.groups.intern(ranks_of(group))});
                packs_.push_back(pack);
            }
        }
        set_collectives(std::move(deeds), sight.groups, sight.settings.most_operations);
    }

    void load(std::uint32_t rank, std::vector<Cargo>& cargo) const override {
        for (std::uint32_t deed = 0; deed < deeds().size(); ++deed) {
            if (groups_.place(deeds()[deed].first, rank) != kNone) {
                for (const auto& piece : *packs_[deed]) {
                    cargo.push_back({deed, piece.tensor, piece.box, 0, true, false, true});
                }
            }
        }
    }

private:
    const GroupTable& groups_;
    std::vector<std::shared_ptr<const Pack>> packs_;  ///< By deed.
};

class GatherPlanner {
public:
    GatherPlanner(const Sight& sight, std::size_t stage, bool has_broadcast)
        : sight_{sight},
          stage_{static_cast<std::uint32_t>(stage)},
          gather_{sight.plan.stages[stage]},
          broadcast_{has_broadcast ? &sight.plan.stages[stage + 1] : nullptr},
          index_{std::make_shared<GatherIndex>(GatherIndex{sight, gather_, {}})} {}

    void run(Steps& steps) {
        std::vector<std::vector<Pack>> lanes;
        if (broadcast_ == nullptr) {
            lanes.push_back(packs_of(whole_tensors(gathered_classes())));
        } else {
            for (const auto& collective : broadcast_->collectives) {
                lanes.push_back(packs_of(pieces_of(collective)));
            }
        }
        for (const auto& lane : lanes) {
            add_scripts(lane);
        }
        const auto waves = independent_collectives();
        for (std::size_t turn = 0;
             std::ranges::any_of(lanes, [&](const auto& lane) { return turn < lane.size(); });
             ++turn) {
            auto pack = std::make_shared<Pack>();
            for (const auto& lane : lanes) {
                if (turn < lane.size()) {
                    pack->insert(pack->end(), lane[turn].begin(), lane[turn].end());
                }
            }
            for (const auto& collectives : waves) {
                auto step = std::make_unique<GatherStep>(stage_, index_, pack, collectives);
                if (!step->deeds().empty()) {
                    steps.push_back(std::move(step));
                }
            }
            broadcast(lanes, turn, steps);
        }
    }

private:
    void broadcast(const std::vector<std::vector<Pack>>& lanes, std::size_t turn, Steps& steps) const {
        std::vector<std::pair<const Collective*, std::shared_ptr<const Pack>>> sent;
        for (std::size_t lane = 0; broadcast_ != nullptr && lane < lanes.size(); ++lane) {
            if (turn < lanes[lane].size()) {
                sent.emplace_back(&broadcast_->collectives[lane],
                                  std::make_shared<const Pack>(lanes[lane][turn]));
            }
        }
        if (!sent.empty()) {
            steps.push_back(std::make_unique<BroadcastStep>(sight_, stage_ + 1, sent));
        }
    }

    [[nodiscard]] std::vector<std::uint32_t> gathered_classes() const {
        std::vector<std::uint32_t> classes;
        for (const auto& collective : gather_.collectives) {
            classes.insert(classes.end(), collective.parameters.begin(), collective.parameters.end());
        }
        std::ranges::sort(classes);
        classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
        return classes;
    }

    [[nodiscard]] Piece piece(const Tensor& tensor, const Box& box) const {
        return {tensor, box, box.volume() * sight_.workload.classes()[tensor.parameter].element_bytes()};
    }

    /// What of a box anyone holds: all of it but where a tensor has rows that are padding.
    void add_held(const Tensor& tensor, const Box& box, std::vector<Piece>& pieces) const {
        std::vector<Piece> held;
        std::uint64_t elements = 0;
        for (const auto& shard : sight_.workload.classes()[tensor.parameter].source.shards()) {
            for (const auto& part : shard.boxes) {
                if (const auto common = intersection(part, box); common && common->volume() > 0) {
                    held.push_back(piece(tensor, *common));
                    elements += common->volume();
                }
            }
        }
        if (elements == box.volume()) {
            held = {piece(tensor, box)};
        }
        pieces.insert(pieces.end(), held.begin(), held.end());
    }

    [[nodiscard]] std::vector<Piece> whole_tensors(std::span<const std::uint32_t> classes) const {
        std::vector<Piece> pieces;
        for (const auto& run : export_order(sight_.workload, classes)) {
            const auto& shape = sight_.workload.classes()[run.parameter].source.shape();
            add_held({run.parameter, run.slice, run.tensor}, Box::whole(shape), pieces);
        }
        return pieces;
    }

    /// Copies are the same tensors as what they copy, which is among the parts.
    [[nodiscard]] std::vector<Piece> pieces_of(const Collective& collective) const {
        if (collective.parts.empty()) {
            return whole_tensors(collective.parameters);
        }
        std::vector<Piece> pieces;
        for (const auto& part : collective.parts) {
            const bool is_copy = sight_.workload.classes()[part.parameter].slices[part.slice].is_copy;
            for (std::uint32_t t = 0; t < part.tensors && !is_copy; ++t) {
                add_held({part.parameter, part.slice, part.first_tensor + t}, part.box, pieces);
            }
        }
        return pieces;
    }

    /// Pieces in order, as many to a pack as fit; what is larger than a pack is cut along its first axis.
    [[nodiscard]] std::vector<Pack> packs_of(const std::vector<Piece>& pieces) const {
        const auto limit = std::max<std::uint64_t>(sight_.settings.pack_bytes.count(), 1);
        std::vector<Pack> packs;
        std::uint64_t filled = limit;
        for (const auto& whole : pieces) {
            const auto rows = whole.box.axes()[0];
            const auto ways = std::clamp<std::uint64_t>(
                (whole.bytes + limit - 1) / limit, 1, std::max<std::uint64_t>(rows.length(), 1));
            for (std::uint64_t i = 0; i < ways; ++i) {
                const Interval cut{rows.begin + rows.length() * i / ways,
                                   rows.begin + rows.length() * (i + 1) / ways};
                const auto part = piece(whole.tensor, whole.box.with(0, cut));
                if (filled + part.bytes > limit) {
                    packs.emplace_back();
                    filled = 0;
                }
                packs.back().push_back(part);
                filled += part.bytes;
            }
        }
        return packs;
    }

    void add_scripts(const std::vector<Pack>& packs) {
        for (const auto& pack : packs) {
            for (const auto& part : pack) {
                const std::pair key{part.tensor.parameter, part.tensor.slice};
                if (!index_->scripts.contains(key)) {
                    index_->scripts.emplace(key, script_of(sight_, gather_, key.first, key.second));
                }
            }
        }
    }

    /// Whether one collective of the gather may wait for the other: they move the same class, and are no
    /// pipeline broadcasts of different stages.
    [[nodiscard]] bool depends(const Collective& a, const Collective& b) const {
        const auto stage_of = [&](const Collective& collective) {
            return sight_.plan.groups[collective.groups].front().front().index() /
                   sight_.workload.trainers_per_stage();
        };
        const bool are_apart = a.role == CollectiveRole::kPipelineBroadcast &&
                               b.role == CollectiveRole::kPipelineBroadcast && stage_of(a) != stage_of(b);
        return !are_apart && std::ranges::any_of(a.parameters, [&](std::uint32_t parameter) {
            return std::ranges::binary_search(b.parameters, parameter);
        });
    }

    /// Positions of the collectives, in order; those of an entry do not wait for each other.
    [[nodiscard]] std::vector<std::vector<std::size_t>> independent_collectives() const {
        std::vector<std::vector<std::size_t>> waves;
        for (std::size_t i = 0; i < gather_.collectives.size(); ++i) {
            const bool waits = waves.empty() || std::ranges::any_of(waves.back(), [&](std::size_t other) {
                                   return depends(gather_.collectives[other], gather_.collectives[i]);
                               });
            if (waits) {
                waves.emplace_back();
            }
            waves.back().push_back(i);
        }
        return waves;
    }

    const Sight& sight_;
    std::uint32_t stage_;
    const PlanStage& gather_;
    const PlanStage* broadcast_;
    std::shared_ptr<GatherIndex> index_;
};

}  // namespace

void add_gather_steps(const Sight& sight, std::size_t stage, bool has_broadcast, Steps& steps) {
    GatherPlanner{sight, stage, has_broadcast}.run(steps);
}

}  // namespace refit::program
