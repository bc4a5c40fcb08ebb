// SPDX-License-Identifier: Apache-2.0
#include "refit/jitter.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "refit/flow_run.hpp"
#include "refit/link_reduction.hpp"

namespace refit {
namespace {

/// Draws that are the same on every machine: the standard's engine, none of its distributions.
class Draws {
public:
    explicit Draws(std::uint64_t seed) : engine_{seed} {}

    /// The largest of `count` standard normal values. Pre: count >= 1.
    [[nodiscard]] double largest(double count) {
        // The median of a uniform value in (0, 1) to the power 1/n; log1p keeps what lies close to 1.
        const auto uniform = (static_cast<double>(engine_() >> 11U) + 0.5) * 0x1p-53;
        const auto above = -std::expm1(std::log(uniform) / count);
        return normal_above(above);
    }

private:
    /// The value that a standard normal variable exceeds with this probability. Range: (0, 1).
    static double normal_above(double probability) {
        double low = -40.0;
        double high = 40.0;
        for (int i = 0; i < 80; ++i) {
            const auto middle = (low + high) / 2.0;
            (0.5 * std::erfc(middle / std::sqrt(2.0)) > probability ? low : high) = middle;
        }
        return low;
    }

    std::mt19937_64 engine_;
};

class Sampler {
public:
    Sampler(const TaskGraph& graph, const Cluster& cluster, const Jitter& jitter)
        : graph_{graph}, cluster_{cluster}, jitter_{jitter}, draws_{jitter.seed} {}

    FlowNetwork next() {
        FlowNetwork network;
        network.reserve(graph_.network.flows(), 0, 0);
        for (std::uint32_t link = 0; link < graph_.network.links(); ++link) {
            const auto ranks = static_cast<double>(graph_.ranks_of(link).size());
            const bool is_host = graph_.links[link].port == Port::kHost;
            network.add_link(graph_.network.rate(link) * (is_host ? 1.0 : slowest(jitter_.links, ranks)));
        }
        for (std::uint32_t task = 0; task < graph_.network.flows(); ++task) {
            auto flow = graph_.network.flow(task);
            const auto activity = graph_.tasks[task].activity;
            if (!is_on_links(activity) && activity != Activity::kCopies && flow.bytes > 0.0) {
                flow.bytes /= slowest(jitter_.hosts, hosts_of(activity));
            }
            network.add_flow(flow, graph_.network.uses(task), graph_.network.after(task));
        }
        return network;
    }

private:
    /// Of the rate of each of `ranks`, the share that the slowest has.
    [[nodiscard]] double slowest(double spread, double ranks) {
        return spread > 0.0 ? std::exp(-spread * draws_.largest(ranks)) : 1.0;
    }

    [[nodiscard]] double hosts_of(Activity activity) const {
        switch (activity) {
            case Activity::kCalls:
            case Activity::kStaging:
            case Activity::kGrouping:
                return cluster_.train_gpus();
            case Activity::kControl:
                return cluster_.gpus();
            default:
                return cluster_.generate_gpus();
        }
    }

    const TaskGraph& graph_;
    const Cluster& cluster_;
    const Jitter& jitter_;
    Draws draws_;
};

}  // namespace

double JitterTimes::quantile(double share) const {
    const auto last = static_cast<double>(seconds.size() - 1);
    return seconds[static_cast<std::size_t>(std::lround(share * last))];
}

Result<JitterTimes> sample_jitter(const TaskGraph& graph,
                                  const Cluster& cluster,
                                  const Jitter& jitter,
                                  const std::function<bool()>& is_cancelled) {
    JitterTimes times;
    Sampler sampler{graph, cluster, jitter};
    const auto lanes = graph.lane_of_tasks();
    for (std::uint32_t i = 0; i < jitter.samples; ++i) {
        const auto run = run_flows(without_idle_links(sampler.next(), lanes).network, {.has_quotient = false, .is_cancelled = is_cancelled});
        if (!run) {
            return fail(Faults{run.error()});
        }
        times.seconds.push_back(run->makespan);
    }
    std::ranges::sort(times.seconds);
    return times;
}

}  // namespace refit
