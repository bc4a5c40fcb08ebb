// SPDX-License-Identifier: Apache-2.0
#include "transfers.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace refit::proof {
namespace {

/// How far the transfers from a trainer stage have come.
struct Cursor {
    std::vector<std::uint32_t> slices;
    std::size_t position = 0;
    std::uint64_t tensor = 0;
};

/// What the transfers of one stage brought of one slice.
struct Brought {
    std::uint32_t slice = 0;
    Interval tensors;
    std::map<std::uint32_t, std::vector<std::uint32_t>> by_rank;  ///< Numbers of regions.
};

class TransferFollower {
public:
    TransferFollower(FaultLog& log,
                     const Plan& plan,
                     const ClassFacts& facts,
                     std::uint32_t train_gpus,
                     std::vector<Arrivals>& arrivals)
        : log_{log}, plan_{plan}, facts_{facts}, train_gpus_{train_gpus}, arrivals_{arrivals} {}

    void follow(std::size_t index) {
        const auto& stage = plan_.stages[index];
        stage_ = index;
        brought_.clear();
        for (const auto& use : stage.transfers) {
            if (plan_.blocks[use.block].parameter == facts_.index()) {
                follow_use(stage.train_stage, use);
            }
        }
        share(stage);
    }

private:
    Cursor& cursor_of(std::uint32_t train_stage) {
        const auto [found, is_new] = cursors_.try_emplace(train_stage);
        if (is_new) {
            found->second.slices = facts_.slices_from(train_stage);
        }
        return found->second;
    }

    void follow_use(std::uint32_t train_stage, const TransferUse& use) {
        auto& cursor = cursor_of(train_stage);
        while (cursor.position < cursor.slices.size() &&
               cursor.tensor == facts_.entry().slices[cursor.slices[cursor.position]].layers) {
            ++cursor.position;
            cursor.tensor = 0;
        }
        const bool is_over = cursor.position == cursor.slices.size();
        if (is_over ||
            use.tensors > facts_.entry().slices[cursor.slices[cursor.position]].layers - cursor.tensor) {
            log_.add(
                "use-tensors",
                {.stage = stage_, .parameter = facts_.index()},
                "transfers of " + std::to_string(use.tensors) + " tensors, more than are left of the slice");
            return;
        }
        const auto slice = cursor.slices[cursor.position];
        const Interval tensors{cursor.tensor, cursor.tensor + use.tensors};
        cursor.tensor = tensors.end;
        if (brought_.empty() || brought_.back().slice != slice) {
            brought_.push_back({slice, {tensors.begin, tensors.begin}, {}});
        }
        brought_.back().tensors.end = tensors.end;
        move(use, tensors, brought_.back());
    }

    void move(const TransferUse& use, const Interval& tensors, Brought& brought) {
        const auto& block = plan_.blocks[use.block];
        std::vector<std::optional<std::uint32_t>> regions(block.boxes.size());
        for (std::size_t i = 0; i < block.size(); ++i) {
            const auto& box = block.boxes[block.box[i]];
            const auto source = use.first_source.index() + block.source[i];
            if (!facts_.holds(source, brought.slice, box)) {
                log_.add("source",
                         {.stage = stage_,
                          .parameter = facts_.index(),
                          .slice = brought.slice,
                          .rank = source,
                          .region = Region{tensors, box}},
                         "sent by a rank that does not hold it, in transfer " + std::to_string(i));
            }
            auto& region = regions[block.box[i]];
            if (!region) {
                region = arrivals_[brought.slice].region(stage_, {tensors, box});
            }
            const auto destination = train_gpus_ + block.destination[i];
            arrivals_[brought.slice].add(destination, *region);
            brought.by_rank[destination].push_back(*region);
        }
    }

    /// The collectives run through the slices with replicas, a call a tensor.
    void share(const PlanStage& stage) {
        auto next = brought_.begin();
        std::uint64_t done = 0;
        for (const auto& collective : stage.collectives) {
            if (!std::ranges::binary_search(collective.parameters, facts_.index())) {
                continue;
            }
            while (next != brought_.end() &&
                   (!facts_.has_replicas(next->slice) || done == next->tensors.length())) {
                ++next;
                done = 0;
            }
            const Place place{.stage = stage_, .parameter = facts_.index()};
            if (next == brought_.end() || collective.parameters.size() != 1 || collective.calls == 0 ||
                collective.calls > next->tensors.length() - done) {
                log_.add(
                    "share-calls",
                    place,
                    "replicas share tensors that no transfer of the stage brought, or of several classes");
                return;
            }
            const auto begin = next->tensors.begin + done;
            share_groups(collective, *next, {begin, begin + collective.calls});
            done += collective.calls;
        }
    }

    void share_groups(const Collective& collective, const Brought& brought, const Interval& tensors) {
        const auto& groups = plan_.groups[collective.groups];
        for (std::size_t i = 0; i < groups.size(); ++i) {
            const auto& group = groups[i];
            const std::size_t givers = is_broadcast(collective.role) ? 1 : group.size();
            std::vector<std::uint32_t> given;  // Giver by giver.
            std::vector<std::size_t> ends{0};
            for (std::size_t from = 0; from < givers; ++from) {
                append_regions_at(brought, group[from].index(), tensors, given);
                ends.push_back(given.size());
            }
            Bytes moved;
            for (const auto region : given) {
                moved += Bytes{arrivals_[brought.slice].at(region).elements()} * facts_.entry().element_bytes();
            }
            for (std::size_t to = 0; to < group.size(); ++to) {
                const auto own = to < givers ? std::pair{ends[to], ends[to + 1]} : std::pair{given.size(), given.size()};
                give(group[to].index(), brought.slice, std::span{given}.first(own.first), std::span{given}.subspan(own.second));
            }
            if (moved.count() != collective.bytes[i]) {
                log_.add("share-bytes",
                         {.stage = stage_,
                          .parameter = facts_.index(),
                          .slice = brought.slice,
                          .rank = group.front().index()},
                         "its group says " + std::to_string(collective.bytes[i]) +
                             " bytes, the members have " + std::to_string(moved.count()));
            }
        }
    }

    /// A member gets what those before it and those after it give.
    void give(std::uint32_t rank,
              std::uint32_t slice,
              std::span<const std::uint32_t> before,
              std::span<const std::uint32_t> after) {
        if (before.empty() && after.empty()) {
            return;
        }
        if (rank < train_gpus_) {
            log_.add("share-member",
                     {.stage = stage_, .parameter = facts_.index(), .slice = slice, .rank = rank},
                     "a trainer among replicas of generators");
            return;
        }
        arrivals_[slice].add(rank, before);
        arrivals_[slice].add(rank, after);
    }

    /// What transfers brought to a rank of these tensors.
    void append_regions_at(const Brought& brought,
                           std::uint32_t rank,
                           const Interval& tensors,
                           std::vector<std::uint32_t>& regions) {
        const auto found = brought.by_rank.find(rank);
        if (found == brought.by_rank.end()) {
            return;
        }
        for (const auto number : found->second) {
            const auto& region = arrivals_[brought.slice].at(number);
            const Interval common{std::max(region.tensors.begin, tensors.begin),
                                  std::min(region.tensors.end, tensors.end)};
            if (common == region.tensors) {
                regions.push_back(number);
            } else if (common.begin < common.end) {
                regions.push_back(arrivals_[brought.slice].region(stage_, Region{common, region.box}));
            }
        }
    }

    FaultLog& log_;
    const Plan& plan_;
    const ClassFacts& facts_;
    std::uint32_t train_gpus_;
    std::vector<Arrivals>& arrivals_;
    std::size_t stage_ = 0;
    std::map<std::uint32_t, Cursor> cursors_;  ///< By trainer stage.
    std::vector<Brought> brought_;             ///< By the present stage.
};

}  // namespace

void follow_transfers(FaultLog& log,
                      const Plan& plan,
                      const ClassFacts& facts,
                      std::uint32_t train_gpus,
                      std::vector<Arrivals>& arrivals) {
    TransferFollower follower{log, plan, facts, train_gpus, arrivals};
    for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
        if (plan.stages[stage].kind == StageKind::kTransfer) {
            follower.follow(stage);
        }
    }
}

}  // namespace refit::proof
