// SPDX-License-Identifier: Apache-2.0
#include "fluid_oracle.hpp"

#include <algorithm>
#include <limits>

namespace refit::testing_support {
namespace {

using Real = long double;
constexpr Real kNever = std::numeric_limits<Real>::infinity();
constexpr Real kRounding = 1e-17L;

enum class Phase : std::uint8_t { kWaits, kRuns, kIsOver };

struct Oracle {
    const FlowNetwork& network;
    std::vector<Phase> phases;
    std::vector<Real> left;
    std::vector<Real> start;
    std::vector<Real> end;
    std::vector<Real> capacity;
    std::vector<bool> is_changed;
    Real now = 0.0L;

    explicit Oracle(const FlowNetwork& what)
        : network{what},
          phases(what.flows(), Phase::kWaits),
          left(what.flows()),
          start(what.flows()),
          end(what.flows()),
          is_changed(what.changes().size(), false) {
        for (std::uint32_t link = 0; link < what.links(); ++link) {
            capacity.push_back(what.rate(link));
        }
    }

    /// When the flow could start: never while one that it follows is not over.
    Real start_of(std::uint32_t flow) const {
        Real ready = network.flow(flow).earliest.value();
        for (const auto before : network.after(flow)) {
            ready = phases[before] == Phase::kIsOver ? std::max(ready, end[before]) : kNever;
        }
        return ready + network.flow(flow).latency.value();
    }

    void apply_changes() {
        // In the order of their times; those of one time as they were put in.
        while (true) {
            std::size_t next = is_changed.size();
            for (std::size_t i = 0; i < is_changed.size(); ++i) {
                const auto at = network.changes()[i].at;
                if (!is_changed[i] && at.value() <= now &&
                    (next == is_changed.size() || at < network.changes()[next].at)) {
                    next = i;
                }
            }
            if (next == is_changed.size()) {
                return;
            }
            is_changed[next] = true;
            capacity[network.changes()[next].link] = network.changes()[next].rate.value_or(0.0);
        }
    }

    void start_flows() {
        bool is_done = false;
        while (!is_done) {
            is_done = true;
            for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
                if (phases[flow] == Phase::kWaits && start_of(flow) <= now) {
                    start[flow] = now;
                    left[flow] = network.flow(flow).bytes;
                    end[flow] = now;
                    phases[flow] = left[flow] > 0.0L ? Phase::kRuns : Phase::kIsOver;
                    is_done = false;
                }
            }
        }
    }

    std::vector<Real> rates() const {
        std::vector<Real> rate(network.flows(), 0.0L);
        std::vector<bool> rises(network.flows());
        for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
            rises[flow] = phases[flow] == Phase::kRuns;
        }
        while (std::find(rises.begin(), rises.end(), true) != rises.end()) {
            std::vector<Real> full_at(network.links(), kNever);
            for (std::uint32_t link = 0; link < network.links(); ++link) {
                Real room = capacity[link];
                Real slope = 0.0L;
                for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
                    for (const auto& use : network.uses(flow)) {
                        if (use.link == link) {
                            room -= rate[flow] * use.per_byte;
                            slope += rises[flow] ? Real{use.per_byte} * network.flow(flow).weight : 0.0L;
                        }
                    }
                }
                if (slope > 0.0L) {
                    full_at[link] = std::max(room, 0.0L) / slope;
                }
            }
            std::vector<Real> stops_at(network.flows(), kNever);
            Real lowest = kNever;
            for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
                if (rises[flow]) {
                    stops_at[flow] = Real{network.flow(flow).rate_cap} / network.flow(flow).weight;
                    for (const auto& use : network.uses(flow)) {
                        stops_at[flow] = std::min(stops_at[flow], full_at[use.link]);
                    }
                    lowest = std::min(lowest, stops_at[flow]);
                }
            }
            for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
                if (rises[flow] && stops_at[flow] <= lowest) {
                    rate[flow] = lowest * network.flow(flow).weight;
                    rises[flow] = false;
                }
            }
        }
        return rate;
    }

    /// Goes to the next event. Returns false where there is none.
    bool step() {
        apply_changes();
        start_flows();
        const auto rate = rates();
        Real next = kNever;
        bool is_busy = false;
        for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
            is_busy = is_busy || phases[flow] != Phase::kIsOver;
            if (phases[flow] == Phase::kWaits) {
                next = std::min(next, start_of(flow));
            } else if (phases[flow] == Phase::kRuns && rate[flow] > 0.0L) {
                next = std::min(next, now + left[flow] / rate[flow]);
            }
        }
        for (std::size_t i = 0; is_busy && i < is_changed.size(); ++i) {
            if (!is_changed[i]) {
                next = std::min(next, Real{network.changes()[i].at.value()});
            }
        }
        if (next == kNever) {
            return false;
        }
        for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
            if (phases[flow] == Phase::kRuns && rate[flow] > 0.0L) {
                const bool is_over = now + left[flow] / rate[flow] <= next * (1.0L + kRounding);
                left[flow] -= rate[flow] * (next - now);
                if (is_over) {
                    phases[flow] = Phase::kIsOver;
                    end[flow] = next;
                }
            }
        }
        now = next;
        return true;
    }
};

}  // namespace

std::optional<OracleRun> run_slowly(const FlowNetwork& network) {
    Oracle oracle{network};
    while (oracle.step()) {
    }
    OracleRun run;
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        if (oracle.phases[flow] != Phase::kIsOver) {
            return std::nullopt;
        }
        run.start.push_back(static_cast<double>(oracle.start[flow]));
        run.end.push_back(static_cast<double>(oracle.end[flow]));
    }
    return run;
}

}  // namespace refit::testing_support
