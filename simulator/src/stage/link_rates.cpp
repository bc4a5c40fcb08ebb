// SPDX-License-Identifier: Apache-2.0
#include "refit/link_rates.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace refit {

LinkRates::LinkRates(const Simulation& simulation)
    : simulation_{simulation}, first_(simulation.graph.network.links() + 1, 0) {
    const auto& graph = simulation.graph;
    const auto each = [&](const auto& visit) {
        for (std::uint32_t i = 0; i < simulation.run.segments.size(); ++i) {
            const auto task = simulation.run.segments[i].flow;
            for (const auto& use : graph.network.uses(task)) {
                if (carries_bytes(graph, task, use.link)) {
                    visit(use, i);
                }
            }
        }
    };
    each([&](const LinkUse& use, std::uint32_t) { ++first_[use.link + 1]; });
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    entries_.resize(first_.back());
    auto next = first_;
    each([&](const LinkUse& use, std::uint32_t segment) {
        entries_[next[use.link]++] = {segment, use.per_byte};
    });
}

std::vector<RatePoint> LinkRates::course(std::span<const LinkUse> links) const {
    struct Change {
        double at;
        double rate;
        int open;
    };
    std::vector<Change> changes;
    for (const auto& link : links) {
        for (auto i = first_[link.link]; i < first_[link.link + 1]; ++i) {
            const auto& segment = simulation_.run.segments[entries_[i].segment];
            const auto rate = segment.rate * entries_[i].per_byte * link.per_byte;
            changes.push_back({segment.from.value(), rate, 1});
            changes.push_back({segment.to.value(), -rate, -1});
        }
    }
    std::ranges::stable_sort(changes, {}, &Change::at);
    std::vector<RatePoint> points;
    double rate = 0.0;
    int open = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
        rate += changes[i].rate;
        open += changes[i].open;
        // Sums leave a rest of rounding; with nothing open there is no rate.
        rate = open == 0 ? 0.0 : std::max(rate, 0.0);
        const bool is_last_of_moment = i + 1 == changes.size() || changes[i + 1].at > changes[i].at;
        if (is_last_of_moment && (points.empty() || points.back().rate != rate)) {
            points.push_back({changes[i].at, rate});
        }
    }
    return points;
}

std::vector<double> binned(std::span<const RatePoint> course, double end, std::size_t bins) {
    std::vector<double> sums(bins, 0.0);
    const auto width = end / static_cast<double>(bins);
    for (std::size_t i = 0; i + 1 < course.size() && width > 0.0; ++i) {
        const auto from = course[i].at;
        const auto to = course[i + 1].at;
        const auto last = std::min(bins - 1, static_cast<std::size_t>(to / width));
        for (auto bin = std::min(bins - 1, static_cast<std::size_t>(from / width)); bin <= last; ++bin) {
            const auto left = static_cast<double>(bin) * width;
            const auto overlap = std::min(to, left + width) - std::max(from, left);
            sums[bin] += std::max(0.0, overlap) * course[i].rate / width;
        }
    }
    return sums;
}

std::vector<std::uint32_t> task_limits(const Simulation& simulation) {
    std::vector<std::uint32_t> limits(simulation.graph.tasks.size(), RateSegment::kOwnCap);
    const auto& segments = simulation.run.segments;
    std::map<std::uint32_t, double> seconds;
    for (std::size_t i = 0; i < segments.size(); ++i) {
        seconds[segments[i].limit] += segments[i].to.value() - segments[i].from.value();
        if (i + 1 == segments.size() || segments[i + 1].flow != segments[i].flow) {
            limits[segments[i].flow] =
                std::ranges::max_element(seconds, {}, [](const auto& entry) { return entry.second; })->first;
            seconds.clear();
        }
    }
    return limits;
}

}  // namespace refit
