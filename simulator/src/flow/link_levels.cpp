// SPDX-License-Identifier: Apache-2.0
#include "link_levels.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace refit::flow {
namespace {

/// Levels closer than this, relative, are one: some ten roundings.
constexpr double kSame = 1.0 / (1ULL << 49U);
/// The sums are added up afresh after so many updates, lest roundings add up.
constexpr std::uint16_t kMaxUpdates = 512;
constexpr int kMaxSteps = 100;
constexpr std::uint64_t kSolvesBetweenQuestions = 4096;

bool is_same(double a, double b) {
    return a == b || std::abs(a - b) <= kSame * std::min(a, b);
}

}  // namespace

LinkLevels::LinkLevels(const FlowNetwork& network, const Limits& limits)
    : network_{network},
      limits_{limits},
      level_(limits.cells(), kUnlimited),
      states_(network.links()),
      slots_(network.all_uses()),
      slot_of_use_(network.all_uses()),
      by_rank_(network.links()),
      dirty_{network.links()} {
    std::copy(limits.caps().begin(), limits.caps().end(), level_.begin() + limits.links());
    if (!limits.is_unit()) {
        uses_.reserve(network.all_uses());
    }
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        for (const auto& use : network.uses(flow)) {
            ++states_[use.link].first;
            if (!limits.is_unit()) {
                uses_.push_back(use.per_byte * network.flow(flow).weight);
            }
        }
    }
    std::uint32_t first = 0;
    for (std::uint32_t link = 0; link < network.links(); ++link) {
        first += std::exchange(states_[link].first, first);
        states_[link].rate = network.rate(link);
    }
    std::iota(by_rank_.begin(), by_rank_.end(), 0U);
    for (std::uint32_t link = 0; link < network.links(); ++link) {
        states_[link].rank = link;
    }
}

void LinkLevels::touch(std::uint32_t link) {
    if (!states_[link].is_touched) {
        states_[link].is_touched = true;
        touched_.push_back({link, level_[link]});
    }
}

void LinkLevels::forget_touched() {
    for (const auto& touched : touched_) {
        states_[touched.link].is_touched = false;
        states_[touched.link].has_moved = false;
    }
    touched_.clear();
}

void LinkLevels::place(State& state, double level, double use, double limit) noexcept {
    if (limit < level) {
        state.held += use * limit;
        state.below = std::max(state.below, limit);
    } else {
        state.open += use;
        state.above = std::min(state.above, limit);
        ++state.opens;
    }
}

void LinkLevels::unplace(State& state, double level, double use, double limit) noexcept {
    if (limit < level) {
        state.held -= use * limit;
    } else {
        --state.opens;
        state.open = state.opens == 0 ? 0.0 : state.open - use;
    }
}

LinkLevels::LowestTwo LinkLevels::lowest_two(std::uint32_t flow) const noexcept {
    const auto uses = network_.uses(flow);
    LowestTwo two{level_[limits_.cap_of(flow)], kUnlimited, uses.size()};
    for (std::size_t i = 0; i < uses.size(); ++i) {
        const auto level = level_[uses[i].link];
        if (level < two.lowest) {
            two.second = std::exchange(two.lowest, level);
            two.use = i;
        } else {
            two.second = std::min(two.second, level);
        }
    }
    return two;
}

void LinkLevels::set_private(std::uint32_t flow) {
    const auto two = lowest_two(flow);
    auto* const cells = level_.data() + limits_.first_private() + limits_.first_use(flow);
    for (std::size_t i = 0; i < network_.uses(flow).size(); ++i) {
        cells[i] = i == two.use ? two.second : two.lowest;
    }
}

void LinkLevels::add(std::uint32_t flow) {
    if (limits_.has_private(flow)) {
        set_private(flow);
    }
    const auto uses = network_.uses(flow);
    for (std::uint32_t i = 0; i < uses.size(); ++i) {
        auto& state = states_[uses[i].link];
        const auto use = limits_.first_use(flow) + i;
        const auto slot = state.first + state.count++;
        slots_[slot] = {limits_.cell_of(flow, i), use};
        state.shared += is_shared(slots_[slot].cell) ? 1U : 0U;
        slot_of_use_[use] = slot;
        place(state, level_[uses[i].link], use_of(use), level_[slots_[slot].cell]);
        dirty_.insert(state.rank);
    }
}

void LinkLevels::remove(std::uint32_t flow) {
    const auto uses = network_.uses(flow);
    for (std::uint32_t i = 0; i < uses.size(); ++i) {
        auto& state = states_[uses[i].link];
        const auto use = limits_.first_use(flow) + i;
        const auto slot = slot_of_use_[use];
        unplace(state, level_[uses[i].link], use_of(use), level_[slots_[slot].cell]);
        state.shared -= is_shared(slots_[slot].cell) ? 1U : 0U;
        const auto last = state.first + --state.count;
        slots_[slot] = slots_[last];
        slot_of_use_[slots_[slot].use] = slot;
        if (state.count == 0) {
            state.held = 0.0;
            state.open = 0.0;
        }
        dirty_.insert(state.rank);
    }
}

void LinkLevels::set_rate(std::uint32_t link, double rate) {
    states_[link].rate = rate;
    dirty_.insert(states_[link].rank);
}

/// One flow of the link has another limit than before.
inline void LinkLevels::push(std::uint32_t link, double use, double was, double is) {
    auto& state = states_[link];
    const auto level = level_[link];
    if (was >= level && is >= level) {
        state.above = std::min(state.above, is);
        return;
    }
    if (was < level && is < level) {
        state.held += use * (is - was);
        state.below = std::max(state.below, is);
    } else {
        unplace(state, level, use, was);
        place(state, level, use, is);
        state.has_moved = true;
        touch(link);
    }
    ++state.updates;
    dirty_.insert(state.rank);
}

template <bool kIsPairs, bool kIsUnit>
void LinkLevels::spread(std::uint32_t link, double was, double is) {
    const auto links = limits_.links();
    const auto* const slots = slots_.data() + states_[link].first;
    const auto count = states_[link].count;
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto cell = slots[i].cell;
        if (cell < links) {
            double use = 1.0;
            if constexpr (!kIsUnit) {
                const auto flow = limits_.flow_of(slots[i].use);
                use = uses_[2 * limits_.first_use(flow) + 1 - slots[i].use];
            }
            push(cell, use, was, is);
        } else if constexpr (!kIsPairs) {
            if (cell >= limits_.first_private()) {
                spread_private(limits_.flow_of(slots[i].use));
            }
        }
    }
}

void LinkLevels::spread(std::uint32_t link, double was, double is) {
    if (states_[link].shared == 0) {
        return;
    }
    if (limits_.is_pairs()) {
        limits_.is_unit() ? spread<true, true>(link, was, is) : spread<true, false>(link, was, is);
    } else {
        limits_.is_unit() ? spread<false, true>(link, was, is) : spread<false, false>(link, was, is);
    }
}

/// The level of a link has changed: so may what the flow's other links see of it.
void LinkLevels::spread_private(std::uint32_t flow) {
    const auto uses = network_.uses(flow);
    const auto first = limits_.first_use(flow);
    const auto two = lowest_two(flow);
    for (std::size_t i = 0; i < uses.size(); ++i) {
        auto& cell = level_[limits_.first_private() + first + i];
        const auto is = i == two.use ? two.second : two.lowest;
        if (is != cell) {
            push(uses[i].link, use_of(first + static_cast<std::uint32_t>(i)), cell, is);
            cell = is;
        }
    }
}

LinkLevels::Solution LinkLevels::sum_up(const State& state, double level) const {
    Solution solution{level, state};
    auto& sums = solution.sums;
    sums.updates = 0;
    double held = 0.0;
    double below = -1.0;
    double above = kUnlimited;
    const auto* const slots = slots_.data() + state.first;
    if (uses_.empty()) {
        std::uint32_t opens = 0;
        for (std::uint32_t i = 0; i < state.count; ++i) {
            const auto limit = level_[slots[i].cell];
            const bool is_held = limit < level;
            held += is_held ? limit : 0.0;
            below = std::max(below, is_held ? limit : -1.0);
            above = std::min(above, is_held ? kUnlimited : limit);
            opens += is_held ? 0 : 1;
        }
        sums.opens = opens;
        sums.open = opens;
    } else {
        sums.opens = 0;
        sums.open = 0.0;
        for (std::uint32_t i = 0; i < state.count; ++i) {
            const auto limit = level_[slots[i].cell];
            const auto use = uses_[slots[i].use];
            if (limit < level) {
                held += use * limit;
                below = std::max(below, limit);
            } else {
                sums.open += use;
                above = std::min(above, limit);
                ++sums.opens;
            }
        }
    }
    sums.held = held;
    sums.below = below;
    sums.above = above;
    return solution;
}

/// Newton's method on a concave sum: after the first step it rises to the level, and ends there.
LinkLevels::Solution LinkLevels::search(const State& state, double guess) const {
    if (state.rate == 0.0) {
        return sum_up(state, 0.0);
    }
    auto level = guess;
    bool is_from_below = false;
    for (int step = 0;; ++step) {
        auto solution = sum_up(state, level);
        const auto& sums = solution.sums;
        if (sums.opens == 0) {
            // Once from below, more than the rate can only be a rounding.
            if (is_from_below || sums.held <= state.rate * (1.0 + kSame)) {
                solution.level = kUnlimited;
                return solution;
            }
            is_from_below = true;
            level = 0.0;
            continue;
        }
        const auto next = std::max((state.rate - sums.held) / sums.open, 0.0);
        if (sums.below < next && next <= sums.above) {
            solution.level = next;
            return solution;
        }
        if (is_same(next, level) || step >= kMaxSteps) {
            return solution;
        }
        level = next;
    }
}

/// The level at which the link is full, given the limits of its flows; its sums are brought up to date with
/// it.
double LinkLevels::solve(std::uint32_t link) {
    ++solves_;
    auto& state = states_[link];
    const auto level = level_[link];
    double next = -1.0;
    if (state.updates < kMaxUpdates && state.rate > 0.0) {
        if (state.opens != 0) {
            next = (state.rate - state.held) / state.open;
            if (!(state.below < next && next <= state.above)) {
                next = -1.0;
            }
        } else if (state.held <= state.rate) {
            next = kUnlimited;
        }
    }
    if (next >= 0.0) {
        return is_same(next, level) ? level : next;
    }
    auto solution = search(state, level);
    if (is_same(solution.level, level) && solution.level != level) {
        solution = sum_up(state, level);
    }
    touch(link);
    const auto& sums = solution.sums;
    state.held = sums.held;
    state.open = sums.open;
    state.below = sums.below;
    state.above = sums.above;
    state.opens = sums.opens;
    state.updates = 0;
    state.has_moved = true;
    return solution.level;
}

bool LinkLevels::settle(const std::function<bool()>& is_cancelled) {
    const auto budget = solves_ + 1000 + 64 * std::uint64_t{states_.size()};
    while (!dirty_.is_empty()) {
        const auto link = by_rank_[dirty_.pop_lowest()];
        const auto was = level_[link];
        const auto is = solve(link);
        if (is != was) {
            touch(link);
            level_[link] = is;
            spread(link, was, is);
            ++changes_since_rank_;
        }
        if (solves_ % kSolvesBetweenQuestions == 0 && is_cancelled && is_cancelled()) {
            return false;
        }
        if (solves_ > budget) {
            return refill(is_cancelled);  // roundings chase each other
        }
    }
    if (changes_since_rank_ > 4 * states_.size()) {
        rank_anew();
    }
    return true;
}

void LinkLevels::rank_anew() {
    changes_since_rank_ = 0;
    std::sort(by_rank_.begin(), by_rank_.end(), [&](std::uint32_t a, std::uint32_t b) {
        return level_[a] < level_[b] || (level_[a] == level_[b] && a < b);
    });
    for (std::uint32_t rank = 0; rank < by_rank_.size(); ++rank) {
        states_[by_rank_[rank]].rank = rank;
    }
}

/// What the link's level would be if no link without a level held any of its flows.
double LinkLevels::tentative(std::uint32_t link) const {
    const auto& state = states_[link];
    if (state.rate > 0.0 && state.opens != 0) {
        const auto next = (state.rate - state.held) / state.open;
        if (state.below < next) {
            return next;
        }
    }
    return search(state, kUnlimited).level;
}

/// Gives a link that had none its level.
void LinkLevels::fix(std::uint32_t link, double level) {
    auto& state = states_[link];
    if (state.below >= level) {
        const auto sums = sum_up(state, level).sums;
        state.held = sums.held;
        state.open = sums.open;
        state.below = sums.below;
        state.above = sums.above;
        state.opens = sums.opens;
    }
    level_[link] = level;
    spread(link, kUnlimited, level);
}

bool LinkLevels::refill(const std::function<bool()>& is_cancelled) {
    for (std::uint32_t link = 0; link < states_.size(); ++link) {
        touch(link);
        states_[link].has_moved = true;
        level_[link] = kUnlimited;
    }
    if (!limits_.is_pairs()) {
        // Without levels, a running flow's other limits are its cap alone.
        for (const auto& state : states_) {
            for (std::uint32_t i = 0; i < state.count; ++i) {
                const auto& slot = slots_[state.first + i];
                if (slot.cell >= limits_.first_private()) {
                    level_[slot.cell] = level_[limits_.cap_of(limits_.flow_of(slot.use))];
                }
            }
        }
    }
    using Next = std::pair<double, std::uint32_t>;
    std::vector<Next> queue;
    queue.reserve(states_.size());
    for (std::uint32_t link = 0; link < states_.size(); ++link) {
        states_[link] = sum_up(states_[link], kUnlimited).sums;
        if (states_[link].count != 0) {
            queue.emplace_back(tentative(link), link);
        }
    }
    std::make_heap(queue.begin(), queue.end(), std::greater<>{});
    while (!queue.empty()) {
        if (++solves_ % kSolvesBetweenQuestions == 0 && is_cancelled && is_cancelled()) {
            return false;
        }
        std::pop_heap(queue.begin(), queue.end(), std::greater<>{});
        const auto [key, link] = queue.back();
        const auto level = tentative(link);
        if (level > key && !is_same(level, key)) {
            queue.back().first = level;
            std::push_heap(queue.begin(), queue.end(), std::greater<>{});
            continue;
        }
        queue.pop_back();
        if (level < kUnlimited) {
            fix(link, level);
        }
    }
    dirty_.clear();
    rank_anew();
    return true;
}

std::uint32_t LinkLevels::lowest_limit(std::uint32_t flow) const noexcept {
    auto lowest = limits_.never();
    for (const auto& use : network_.uses(flow)) {
        if (level_[use.link] < level_[lowest]) {
            lowest = use.link;
        }
    }
    const auto cap = limits_.cap_of(flow);
    return level_[cap] < level_[lowest] ? cap : lowest;
}

}  // namespace refit::flow
