// SPDX-License-Identifier: Apache-2.0
#include "refit/flow_run.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <queue>

namespace refit {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::uint32_t kNoLink = RateSegment::kOwnCap;

/// Fills every link anew at each event.
class Refill {
public:
    Refill(const FlowNetwork& network, const FlowOptions& options)
        : network_{network},
          options_{options},
          rates_(network.links()),
          left_(network.flows()),
          rate_(network.flows(), 0.0),
          limit_(network.flows(), kNoLink),
          since_(network.flows(), 0.0),
          waits_(network.flows()),
          followers_(network.flows()) {
        run_.start.resize(network.flows());
        run_.end.resize(network.flows());
        for (std::uint32_t link = 0; link < network.links(); ++link) {
            rates_[link] = network.rate(link);
        }
        for (const auto& change : network.changes()) {
            changes_.push_back(change);
        }
        std::stable_sort(
            changes_.begin(), changes_.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
        for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
            waits_[flow] = static_cast<std::uint32_t>(network.after(flow).size());
            for (const auto before : network.after(flow)) {
                followers_[before].push_back(flow);
            }
            if (waits_[flow] == 0) {
                release(flow, 0.0);
            }
        }
    }

    Result<FlowRun> run() {
        while (true) {
            if (options_.is_cancelled && options_.is_cancelled()) {
                return fail(ErrorCode::kInfeasible, "cancelled", "cancelled");
            }
            ++run_.events;
            begin_due();
            fill();
            const auto next = next_time();
            if (next == kNever) {
                break;
            }
            advance(next);
        }
        if (!active_.empty()) {
            return stuck();
        }
        std::stable_sort(run_.segments.begin(), run_.segments.end(), [](const auto& a, const auto& b) {
            return std::pair{a.flow, a.from} < std::pair{b.flow, b.from};
        });
        return std::move(run_);
    }

private:
    void release(std::uint32_t flow, double after) {
        const auto& what = network_.flow(flow);
        starts_.emplace(std::max(after, what.earliest.value()) + what.latency.value(), flow);
    }

    /// Applies the changes and starts the flows that are due now.
    void begin_due() {
        for (; next_change_ < changes_.size() && changes_[next_change_].at.value() <= now_; ++next_change_) {
            rates_[changes_[next_change_].link] = changes_[next_change_].rate.value_or(0.0);
        }
        while (!starts_.empty() && starts_.top().first <= now_) {
            const auto flow = starts_.top().second;
            starts_.pop();
            run_.start[flow] = now_;
            left_[flow] = network_.flow(flow).bytes;
            if (left_[flow] == 0.0) {
                finish(flow);
            } else {
                active_.push_back(flow);
                rate_[flow] = 0.0;
                limit_[flow] = kNoLink;
                since_[flow] = now_;
            }
        }
    }

    void finish(std::uint32_t flow) {
        end_segment(flow);
        run_.end[flow] = now_;
        run_.makespan = std::max(run_.makespan, now_);
        for (const auto follower : followers_[flow]) {
            if (--waits_[follower] == 0) {
                release(follower, now_);
            }
        }
    }

    void end_segment(std::uint32_t flow) {
        if (options_.has_segments && now_ > since_[flow] && left_[flow] >= 0.0 &&
            network_.flow(flow).bytes > 0.0) {
            run_.segments.push_back({flow, limit_[flow], Seconds{since_[flow]}, Seconds{now_}, rate_[flow]});
        }
        since_[flow] = now_;
    }

    void set_rate(std::uint32_t flow, double rate, std::uint32_t limit) {
        if (rate != rate_[flow] || limit != limit_[flow]) {
            end_segment(flow);
            rate_[flow] = rate;
            limit_[flow] = limit;
        }
    }

    /// Progressive filling: the lowest of all levels and caps first.
    void fill() {
        std::vector<double> room = rates_;
        std::vector<double> load(rates_.size(), 0.0);
        for (const auto flow : active_) {
            for (const auto& use : network_.uses(flow)) {
                load[use.link] += use.per_byte * network_.flow(flow).weight;
            }
        }
        auto open = active_;
        while (!open.empty()) {
            const auto level_of = [&](const LinkUse& use) {
                return std::max(room[use.link], 0.0) / load[use.link];
            };
            double lowest = kNever;
            for (const auto flow : open) {
                lowest = std::min(lowest, network_.flow(flow).rate_cap / network_.flow(flow).weight);
                for (const auto& use : network_.uses(flow)) {
                    lowest = std::min(lowest, level_of(use));
                }
            }
            std::vector<std::pair<std::uint32_t, std::uint32_t>> fixed;
            std::vector<std::uint32_t> rest;
            for (const auto flow : open) {
                const auto uses = network_.uses(flow);
                const auto slowest = std::find_if(
                    uses.begin(), uses.end(), [&](const auto& use) { return level_of(use) <= lowest; });
                if (network_.flow(flow).rate_cap / network_.flow(flow).weight <= lowest) {
                    fixed.emplace_back(flow, kNoLink);
                } else if (slowest != uses.end()) {
                    fixed.emplace_back(flow, slowest->link);
                } else {
                    rest.push_back(flow);
                }
            }
            for (const auto& [flow, limit] : fixed) {
                const auto weight = network_.flow(flow).weight;
                set_rate(flow, std::min(lowest * weight, network_.flow(flow).rate_cap), limit);
                for (const auto& use : network_.uses(flow)) {
                    room[use.link] -= use.per_byte * weight * lowest;
                    load[use.link] -= use.per_byte * weight;
                }
            }
            open = std::move(rest);
        }
    }

    [[nodiscard]] double end_of(std::uint32_t flow) const {
        return rate_[flow] > 0.0 ? now_ + left_[flow] / rate_[flow] : kNever;
    }

    [[nodiscard]] double next_time() const {
        double next = kNever;
        if (!starts_.empty()) {
            next = starts_.top().first;
        }
        if (next_change_ < changes_.size() && !(active_.empty() && starts_.empty())) {
            next = std::min(next, changes_[next_change_].at.value());
        }
        for (const auto flow : active_) {
            next = std::min(next, end_of(flow));
        }
        return next;
    }

    void advance(double next) {
        const auto elapsed = next - now_;
        std::vector<std::uint32_t> over;
        std::vector<std::uint32_t> rest;
        for (const auto flow : active_) {
            (end_of(flow) <= next ? over : rest).push_back(flow);
            left_[flow] = std::max(left_[flow] - rate_[flow] * elapsed, 0.0);
        }
        active_ = std::move(rest);
        now_ = next;
        for (const auto flow : over) {
            finish(flow);
        }
    }

    [[nodiscard]] Failure stuck() const {
        Faults faults;
        for (const auto flow : active_) {
            for (const auto& use : network_.uses(flow)) {
                if (rates_[use.link] == 0.0) {
                    faults.push_back({ErrorCode::kInfeasible,
                                      "link-down",
                                      "link " + std::to_string(use.link) + " stays down under flow " +
                                          std::to_string(flow),
                                      "link " + std::to_string(use.link)});
                }
            }
        }
        return fail(std::move(faults));
    }

    const FlowNetwork& network_;
    const FlowOptions& options_;
    std::vector<double> rates_;
    std::vector<double> left_;
    std::vector<double> rate_;
    std::vector<std::uint32_t> limit_;
    std::vector<double> since_;
    std::vector<std::uint32_t> waits_;
    std::vector<std::vector<std::uint32_t>> followers_;
    std::vector<LinkChange> changes_;
    std::size_t next_change_ = 0;
    std::vector<std::uint32_t> active_;
    using Start = std::pair<double, std::uint32_t>;
    std::priority_queue<Start, std::vector<Start>, std::greater<>> starts_;
    double now_ = 0.0;
    FlowRun run_;
};

}  // namespace

Result<FlowRun> run_flows(const FlowNetwork& network, const FlowOptions& options) {
    if (auto faults = network.faults(); !faults.empty()) {
        return fail(std::move(faults));
    }
    return Refill{network, options}.run();
}

}  // namespace refit
