// SPDX-License-Identifier: Apache-2.0
#include "flow_engine.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace refit::flow {
namespace {

/// Ends this close together, relative to the time, are one event: they differ by roundings.
constexpr double kSameTime = 1.0 / (1ULL << 49U);

}  // namespace

FlowEngine::FlowEngine(const FlowNetwork& network, const FlowOptions& options)
    : network_{network},
      options_{options},
      limits_{network},
      levels_{network, limits_},
      clocks_{network, limits_},
      schedule_{network},
      recorder_{network, limits_, options.has_segments} {
    run_.start.resize(network.flows());
    run_.end.resize(network.flows());
}

Result<FlowRun> FlowEngine::run() {
    while (true) {
        ++run_.events;
        begin_due();
        if (!settle()) {
            return fail(ErrorCode::kInfeasible, kCancelledRule, "cancelled");
        }
        const auto end = clocks_.next();
        const auto start = schedule_.next_start();
        auto next = std::min(end, start);
        if (running_ != 0 || start < kUnlimited) {
            next = std::min(next, schedule_.next_change());
        }
        if (next == kUnlimited) {
            break;
        }
        now_ = std::max(now_, next);
        if (end <= next) {
            finish_due();
        }
    }
    if (running_ != 0) {
        return stuck();
    }
    run_.segments = recorder_.take();
    return std::move(run_);
}

/// Applies the changes and starts the flows that are due.
void FlowEngine::begin_due() {
    while (const auto* change = schedule_.take_change(now_)) {
        levels_.set_rate(change->link, change->rate.value_or(0.0));
    }
    while (const auto flow = schedule_.take_start(now_)) {
        start(*flow);
    }
}

void FlowEngine::start(std::uint32_t flow) {
    run_.start[flow] = now_;
    if (network_.flow(flow).bytes == 0.0) {
        run_.end[flow] = now_;
        run_.makespan = std::max(run_.makespan, now_);
        schedule_.finish(flow, now_);
        return;
    }
    levels_.add(flow);
    fresh_.push_back(flow);
    ++running_;
}

/// Pre: the flow's owner's clock is at this time.
void FlowEngine::finish(std::uint32_t flow, double end) {
    (void)clocks_.disown(flow);
    levels_.remove(flow);
    --running_;
    run_.end[flow] = end;
    run_.makespan = std::max(run_.makespan, end);
    if (recorder_.is_on()) {
        recorder_.end(flow, end);
    }
    schedule_.finish(flow, end);
}

/// With a tolerance: whether little enough of the flow is left.
bool FlowEngine::is_as_good_as_over(std::uint32_t flow, double level) const {
    const auto left = clocks_.left(flow);
    const auto& what = network_.flow(flow);
    return left <= level * now_ * options_.tolerance && left * what.weight <= options_.tolerance * what.bytes;
}

/// Finishes the flows that are over now, and with a tolerance those that nearly are.
void FlowEngine::finish_due() {
    const auto limit = now_ + now_ * kSameTime;
    due_.clear();
    clocks_.for_each_due(std::max(limit, now_ + now_ * options_.tolerance),
                         [&](std::uint32_t owner) { due_.push_back(owner); });
    for (const auto owner : due_) {
        const auto level = levels_.level(owner);
        clocks_.advance(owner, level, now_);
        // Whatever roundings say, the first flow of an owner that is due is over.
        bool is_over = clocks_.due(owner) <= limit;
        while (clocks_.has_flows(owner)) {
            const auto flow = clocks_.first(owner);
            if (is_over || clocks_.left(flow) <= level * now_ * kSameTime) {
                finish(flow, now_);
            } else if (options_.tolerance > 0.0 && is_as_good_as_over(flow, level)) {
                finish(flow, now_ + clocks_.left(flow) / level);
            } else {
                break;
            }
            is_over = false;
        }
        changed_owners_.push_back(owner);
    }
}

bool FlowEngine::settle() {
    constexpr std::uint64_t kEventsBetweenQuestions = 256;
    if (options_.is_cancelled && run_.events % kEventsBetweenQuestions == 1 && options_.is_cancelled()) {
        return false;
    }
    const bool is_mostly_new = fresh_.size() > running_ / 2;
    if (!(is_mostly_new ? levels_.refill(options_.is_cancelled) : levels_.settle(options_.is_cancelled))) {
        return false;
    }
    for (const auto& touched : levels_.touched()) {
        clocks_.advance(touched.link, touched.level, now_);
    }
    for (const auto& touched : levels_.touched()) {
        if (levels_.may_have_moved(touched.link)) {
            hand_over(touched.link);
        }
    }
    own_fresh();
    for (const auto& touched : levels_.touched()) {
        clocks_.foresee(touched.link, levels_.level(touched.link));
    }
    for (const auto owner : changed_owners_) {
        clocks_.foresee(owner, levels_.level(owner));
    }
    if (recorder_.is_on()) {
        record();
    }
    levels_.forget_touched();
    changed_owners_.clear();
    fresh_.clear();
    return true;
}

/// Flows of the link that a lower limit holds now go to that limit. So do those that ran at a cap and cannot
/// any more: caps have no flows to look through, and need not say that a flow changed sides.
void FlowEngine::hand_over(std::uint32_t link) {
    leaving_.clear();
    levels_.for_each_side<true>(link, [&](std::uint32_t flow) {
        if (clocks_.owner(flow) == link) {
            leaving_.push_back(flow);
        }
    });
    if (limits_.owners() != limits_.links()) {
        const auto level = levels_.level(link);
        levels_.for_each_side<false>(link, [&](std::uint32_t flow) {
            const auto owner = clocks_.owner(flow);
            if (owner >= limits_.links() && owner < limits_.owners() && levels_.level(owner) >= level) {
                clocks_.advance(owner, levels_.level(owner), now_);
                changed_owners_.push_back(owner);
                leaving_.push_back(flow);
            }
        });
    }
    for (const auto flow : leaving_) {
        const auto to = levels_.lowest_limit(flow);
        const auto left = clocks_.disown(flow);
        clocks_.advance(to, levels_.level(to), now_);
        clocks_.own(to, flow, left);
        changed_owners_.push_back(to);
        if (recorder_.is_on()) {
            recorder_.set(flow, to, levels_.level(to), now_);
        }
    }
}

void FlowEngine::own_fresh() {
    for (const auto flow : fresh_) {
        const auto to = levels_.lowest_limit(flow);
        clocks_.advance(to, levels_.level(to), now_);
        clocks_.own(to, flow, network_.flow(flow).bytes / network_.flow(flow).weight);
        changed_owners_.push_back(to);
        if (recorder_.is_on()) {
            recorder_.set(flow, to, levels_.level(to), now_);
        }
    }
}

void FlowEngine::record() {
    for (const auto& [link, was] : levels_.touched()) {
        const auto owner = link;
        const auto level = levels_.level(owner);
        if (level != was) {
            clocks_.for_each_owned(owner,
                                   [&](std::uint32_t flow) { recorder_.set(flow, owner, level, now_); });
        }
    }
}

Failure FlowEngine::stuck() const {
    constexpr std::size_t kMaxFaults = 100;
    Faults faults;
    for (std::uint32_t link = 0; link < network_.links() && faults.size() < kMaxFaults; ++link) {
        if (levels_.rate(link) == 0.0) {
            levels_.for_each(link, [&](std::uint32_t flow) {
                if (faults.size() < kMaxFaults) {
                    const auto place = "link " + std::to_string(link);
                    faults.push_back({ErrorCode::kInfeasible,
                                      "link-down",
                                      place + " stays down under flow " + std::to_string(flow),
                                      place});
                }
            });
        }
    }
    return fail(std::move(faults));
}

}  // namespace refit::flow
