// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "limits.hpp"
#include "ranked_set.hpp"

namespace refit::flow {

/// The level of each link, kept max-min fair while flows come and go.
///
/// At its level L a link is full: sum over its flows of use * min(other limit, L) = rate. The flows whose
/// other limits are at L or above are open there, the others held elsewhere. A link keeps the sum over its
/// held flows and the use of its open ones, so that its level is one division as long as no flow changes
/// sides; two bounds tell when one may. A change of level is pushed to the links that share a flow, and these
/// are looked at again, lowest level first, since a link depends on lower links only.
class LinkLevels {
public:
    LinkLevels(const FlowNetwork& network, const Limits& limits);

    [[nodiscard]] double level(std::uint32_t cell) const noexcept { return level_[cell]; }
    [[nodiscard]] double rate(std::uint32_t link) const noexcept { return states_[link].rate; }
    [[nodiscard]] std::uint64_t solves() const noexcept { return solves_; }

    void add(std::uint32_t flow);
    void remove(std::uint32_t flow);
    /// Range: 0, where the link is down, or above.
    void set_rate(std::uint32_t link, double rate);

    /// Makes the levels fair again. Returns false where `is_cancelled` said so.
    bool settle(const std::function<bool()>& is_cancelled);
    /// The same from nothing: better where most flows are new.
    bool refill(const std::function<bool()>& is_cancelled);

    /// A link that `settle` or `refill` looked at: its level before, and whether a flow may have changed
    /// sides.
    struct Touched {
        std::uint32_t link;
        double level;
    };
    [[nodiscard]] const std::vector<Touched>& touched() const noexcept { return touched_; }
    [[nodiscard]] bool may_have_moved(std::uint32_t link) const noexcept { return states_[link].has_moved; }
    void forget_touched();

    /// Calls `action(flow)` for each flow of the link.
    template <class Action>
    void for_each(std::uint32_t link, Action&& action) const {
        for (std::uint32_t i = 0; i < states_[link].count; ++i) {
            action(limits_.flow_of(slots_[states_[link].first + i].use));
        }
    }
    /// Calls `action(flow)` for each flow of the link that a lower limit holds, or for each other one.
    template <bool kHeld, class Action>
    void for_each_side(std::uint32_t link, Action&& action) const {
        const double level = level_[link];
        const auto* const slots = slots_.data() + states_[link].first;
        for (std::uint32_t i = 0; i < states_[link].count; ++i) {
            if ((level_[slots[i].cell] < level) == kHeld) {
                action(limits_.flow_of(slots[i].use));
            }
        }
    }
    /// The lowest limit of the flow; of equals, the first of its links, and its cap last.
    [[nodiscard]] std::uint32_t lowest_limit(std::uint32_t flow) const noexcept;

private:
    /// One flow of a link: the cell with the lowest of its other limits, and the number of its use of this
    /// link.
    struct Slot {
        std::uint32_t cell;
        std::uint32_t use;
    };
    struct alignas(64) State {
        double held = 0.0;          ///< Use times limit, summed over the held flows.
        double open = 0.0;          ///< Use, summed over the open flows.
        double below = -1.0;        ///< No limit of a held flow is above this.
        double above = kUnlimited;  ///< No limit of an open flow is below this.
        double rate = 0.0;
        std::uint32_t opens = 0;    ///< How many flows are open.
        std::uint32_t rank = 0;     ///< Place in the order in which links are looked at.
        std::uint32_t first = 0;    ///< Of its slots.
        std::uint32_t count = 0;    ///< Of its flows that run.
        std::uint32_t shared = 0;   ///< Of these, flows that another link sees too.
        std::uint16_t updates = 0;  ///< Of the sums since they were last added up.
        bool is_touched = false;
        bool has_moved = false;
    };
    /// The lowest limit of a flow, the lowest but for that one, and which use has the lowest: none where it
    /// is the cap.
    struct LowestTwo {
        double lowest;
        double second;
        std::size_t use;
    };
    struct Solution {
        double level;
        State sums;
    };

    [[nodiscard]] double use_of(std::uint32_t use) const noexcept { return uses_.empty() ? 1.0 : uses_[use]; }
    /// Whether the flow whose other limits this cell holds has another link.
    [[nodiscard]] bool is_shared(std::uint32_t cell) const noexcept {
        return cell < limits_.links() || cell >= limits_.first_private();
    }
    void touch(std::uint32_t link);
    void place(State& state, double level, double use, double limit) noexcept;
    void unplace(State& state, double level, double use, double limit) noexcept;
    void push(std::uint32_t link, double use, double was, double is);
    template <bool kIsPairs, bool kIsUnit>
    void spread(std::uint32_t link, double was, double is);
    void spread(std::uint32_t link, double was, double is);
    void spread_private(std::uint32_t flow);
    [[nodiscard]] LowestTwo lowest_two(std::uint32_t flow) const noexcept;
    void set_private(std::uint32_t flow);
    [[nodiscard]] Solution sum_up(const State& state, double level) const;
    [[nodiscard]] Solution search(const State& state, double guess) const;
    [[nodiscard]] double solve(std::uint32_t link);
    [[nodiscard]] double tentative(std::uint32_t link) const;
    void fix(std::uint32_t link, double level);
    void rank_anew();

    const FlowNetwork& network_;
    const Limits& limits_;
    std::vector<double> level_;  ///< By cell.
    std::vector<State> states_;  ///< By link.
    std::vector<Slot> slots_;    ///< Of a link: `count` in use from `first` on.
    std::vector<std::uint32_t> slot_of_use_;
    std::vector<double> uses_;  ///< By use, a unit of weight; empty where all are 1.
    std::vector<std::uint32_t> by_rank_;
    RankedSet dirty_;  ///< Ranks of links to look at.
    std::vector<Touched> touched_;
    std::uint64_t solves_ = 0;
    std::uint64_t changes_since_rank_ = 0;
};

}  // namespace refit::flow
