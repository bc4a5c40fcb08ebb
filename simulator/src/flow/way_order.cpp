// SPDX-License-Identifier: Apache-2.0
#include "way_order.hpp"

#include <algorithm>

namespace refit::flow {
namespace {

/// With more ways the table of meetings would be too large.
constexpr std::uint32_t kMostWays = 2048;
/// Pairs of ways to look at, step by step; beyond it every two ways may meet.
constexpr std::size_t kMostPairs = 4'000'000;

}  // namespace

WayOrder::WayOrder(const FlowNetwork& network,
                   std::span<const std::uint32_t> lanes,
                   const std::vector<std::uint32_t>& number,
                   std::uint32_t ways)
    : network_{network}, number_{number}, ways_{ways}, row_of_way_(ways, kMany) {
    if (lanes.size() != network.flows() || !network.has_order() || ways > kMostWays) {
        return;
    }
    step_of_.resize(network.flows(), kNone);
    behind_.resize(network.flows());
    counted_.resize(network.flows(), kNone);
    std::vector<Front> fronts(*std::ranges::max_element(lanes) + std::size_t{1});
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        place(flow, fronts[lanes[flow]]);
    }
    find_meetings();
}

std::size_t WayOrder::meetings(std::uint32_t way) const noexcept {
    if (row_of_way_[way] == kMany) {
        return ways_;
    }
    std::size_t count = 0;
    for (std::uint32_t other = 0; other < ways_; ++other) {
        count += may_meet(way, other) ? 1U : 0U;
    }
    return count;
}

/// Whether all flows of the step, one of the last two of its lane, are over before this one starts.
bool WayOrder::follows_all(std::uint32_t flow, std::uint32_t step) {
    std::uint32_t found = 0;
    for (const auto before : network_.after(flow)) {
        if (behind_[before].step == step && behind_[before].flows == steps_[step].flows) {
            return true;
        }
        if (step_of_[before] == step && counted_[before] != flow) {
            counted_[before] = flow;
            ++found;
        }
    }
    return found == steps_[step].flows;
}

void WayOrder::place(std::uint32_t flow, Front& front) {
    const bool is_next = front.last != kNone && follows_all(flow, front.last);
    const auto is_in = [&](std::uint32_t before) { return step_of_[before] == front.last; };
    // A flow that follows one of the step under way follows all of the step before that.
    const bool is_among = front.last != kNone && !is_next &&
                          (front.before == kNone || std::ranges::any_of(network_.after(flow), is_in) ||
                           follows_all(flow, front.before));
    if (network_.uses(flow).empty()) {
        const auto step = is_next ? front.last : is_among ? front.before : kNone;
        behind_[flow] = {step, step == kNone ? 0 : steps_[step].flows};
        return;
    }
    if (!is_among) {
        const auto row = is_next ? steps_[front.last].row : rows_++;
        front = {static_cast<std::uint32_t>(steps_.size()), is_next ? front.last : kNone};
        steps_.push_back({row, 0});
    }
    step_of_[flow] = front.last;
    ++steps_[front.last].flows;
}

void WayOrder::find_meetings() {
    std::vector<std::uint8_t> is_known(ways_, 0);
    std::vector<std::uint32_t> first(steps_.size() + 1, 0);
    for (std::uint32_t flow = 0; flow < network_.flows(); ++flow) {
        if (step_of_[flow] == kNone) {
            continue;
        }
        const auto way = number_[network_.way_of(flow)];
        const auto row = steps_[step_of_[flow]].row;
        row_of_way_[way] = is_known[way] == 0 || row_of_way_[way] == row ? row : kMany;
        is_known[way] = 1;
        ++first[step_of_[flow] + 1];
    }
    for (std::size_t step = 0; step < steps_.size(); ++step) {
        first[step + 1] += first[step];
    }
    std::vector<std::uint32_t> ways_of_step(first.back());
    auto next = first;
    for (std::uint32_t flow = 0; flow < network_.flows(); ++flow) {
        if (step_of_[flow] != kNone) {
            ways_of_step[next[step_of_[flow]]++] = number_[network_.way_of(flow)];
        }
    }
    meets_.resize(ways_ * ways_, 0);
    for (std::size_t way = 0; way < ways_; ++way) {
        meets_[way * ways_ + way] = 1;
    }
    std::size_t pairs = 0;
    for (std::size_t step = 0; step < steps_.size(); ++step) {
        const auto from = ways_of_step.begin() + first[step];
        std::sort(from, ways_of_step.begin() + first[step + 1]);
        const auto to = std::unique(from, ways_of_step.begin() + first[step + 1]);
        const auto count = static_cast<std::size_t>(to - from);
        pairs += count * count;
        if (pairs > kMostPairs) {
            row_of_way_.assign(ways_, kMany);
            return;
        }
        for (auto a = from; a != to; ++a) {
            for (auto b = from; b != to; ++b) {
                meets_[*a * ways_ + *b] = 1;
            }
        }
    }
}

}  // namespace refit::flow
