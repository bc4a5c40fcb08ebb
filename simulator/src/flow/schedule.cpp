// SPDX-License-Identifier: Apache-2.0
#include "schedule.hpp"

#include <algorithm>

#include "limits.hpp"

namespace refit::flow {
namespace {

bool is_at_once(const FlowNetwork& network, std::uint32_t flow) {
    const auto& what = network.flow(flow);
    return network.after(flow).empty() && what.earliest.value() + what.latency.value() <= 0.0;
}

}  // namespace

Schedule::Schedule(const FlowNetwork& network)
    : network_{network}, changes_(network.changes().begin(), network.changes().end()) {
    std::stable_sort(
        changes_.begin(), changes_.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
    if (network.has_order()) {
        waits_.resize(network.flows());
        first_follower_.resize(network.flows() + std::size_t{2}, 0);
        for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
            waits_[flow] = static_cast<std::uint32_t>(network.after(flow).size());
            for (const auto before : network.after(flow)) {
                ++first_follower_[before + 2];
            }
        }
        for (std::size_t i = 2; i < first_follower_.size(); ++i) {
            first_follower_[i] += first_follower_[i - 1];
        }
        followers_.resize(first_follower_.back());
        for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
            for (const auto before : network.after(flow)) {
                followers_[first_follower_[before + 1]++] = flow;
            }
        }
    }
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        if (network.after(flow).empty() && !is_at_once(network, flow)) {
            release(flow, 0.0);
        }
    }
    while (next_at_once_ < network.flows() && !is_at_once(network, next_at_once_)) {
        ++next_at_once_;
    }
}

void Schedule::release(std::uint32_t flow, double after) {
    const auto& what = network_.flow(flow);
    starts_.emplace(std::max(after, what.earliest.value()) + what.latency.value(), flow);
}

double Schedule::next_start() const noexcept {
    if (next_at_once_ < network_.flows()) {
        return 0.0;
    }
    return starts_.empty() ? kUnlimited : starts_.top().first;
}

double Schedule::next_change() const noexcept {
    return next_change_ == changes_.size() ? kUnlimited : changes_[next_change_].at.value();
}

std::optional<std::uint32_t> Schedule::take_start(double now) {
    if (next_at_once_ < network_.flows()) {
        const auto flow = next_at_once_++;
        while (next_at_once_ < network_.flows() && !is_at_once(network_, next_at_once_)) {
            ++next_at_once_;
        }
        return flow;
    }
    if (starts_.empty() || starts_.top().first > now) {
        return std::nullopt;
    }
    const auto flow = starts_.top().second;
    starts_.pop();
    return flow;
}

const LinkChange* Schedule::take_change(double now) {
    return next_change() <= now ? &changes_[next_change_++] : nullptr;
}

void Schedule::finish(std::uint32_t flow, double now) {
    if (waits_.empty()) {
        return;
    }
    for (auto i = first_follower_[flow]; i < first_follower_[flow + 1]; ++i) {
        if (--waits_[followers_[i]] == 0) {
            release(followers_[i], now);
        }
    }
}

}  // namespace refit::flow
