// SPDX-License-Identifier: Apache-2.0
#include "refit/simulate.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "refit/link_reduction.hpp"

namespace refit {
namespace {

using Interval = std::pair<double, double>;

/// Length of the union.
double covered(std::vector<Interval>& intervals) {
    std::ranges::sort(intervals);
    double sum = 0.0;
    double reached = 0.0;
    for (const auto& [from, to] : intervals) {
        sum += std::max(0.0, to - std::max(from, reached));
        reached = std::max(reached, to);
    }
    return sum;
}

class Analysis {
public:
    Analysis(Simulation& simulation, bool keeps_segments)
        : keeps_segments_{keeps_segments}, simulation_{simulation}, network_{simulation.graph.network}, run_{simulation.run}, first_segment_(network_.flows() + 1, 0) {
        for (const auto& segment : run_.segments) {
            ++first_segment_[segment.flow + 1];
        }
        std::partial_sum(first_segment_.begin(), first_segment_.end(), first_segment_.begin());
    }

    void run() {
        find_path();
        sum_activities();
        sum_links();
        sum_lanes();
        if (!keeps_segments_) {
            run_.segments.clear();
            run_.segments.shrink_to_fit();
        }
    }

private:
    /// The one of the tasks that a task follows which ended last; the first of equals.
    [[nodiscard]] std::uint32_t latest_before(std::uint32_t task) const {
        auto latest = RateSegment::kOwnCap;
        for (const auto before : network_.after(task)) {
            latest = latest == RateSegment::kOwnCap || run_.end[before] > run_.end[latest] ? before : latest;
        }
        return latest;
    }

    [[nodiscard]] std::uint32_t limit_of(std::uint32_t task) const {
        std::map<std::uint32_t, double> seconds;
        for (auto i = first_segment_[task]; i < first_segment_[task + 1]; ++i) {
            seconds[run_.segments[i].limit] += run_.segments[i].to.value() - run_.segments[i].from.value();
        }
        const auto most = std::ranges::max_element(seconds, {}, [](const auto& entry) { return entry.second; });
        return most == seconds.end() ? RateSegment::kOwnCap : most->first;
    }

    void find_path() {
        if (run_.end.empty()) {
            return;
        }
        auto task = static_cast<std::uint32_t>(std::ranges::max_element(run_.end) - run_.end.begin());
        auto until = run_.makespan;
        while (task != RateSegment::kOwnCap) {
            const auto before = latest_before(task);
            const auto from = before == RateSegment::kOwnCap ? 0.0 : run_.end[before];
            if (until > from) {
                simulation_.path.push_back({task, from, until, limit_of(task)});
            }
            until = from;
            task = before;
        }
        std::ranges::reverse(simulation_.path);
    }

    [[nodiscard]] std::size_t activity_of(std::uint32_t task) const {
        return static_cast<std::size_t>(simulation_.graph.tasks[task].activity);
    }

    void sum_activities() {
        for (const auto& step : simulation_.path) {
            simulation_.critical[activity_of(step.task)] += step.to - step.from;
        }
        std::array<std::vector<Interval>, kActivities> intervals;
        for (std::uint32_t task = 0; task < network_.flows(); ++task) {
            intervals[activity_of(task)].emplace_back(run_.start[task], run_.end[task]);
        }
        std::ranges::transform(intervals, simulation_.busy.begin(), covered);
    }

    void sum_links() {
        std::vector<double> bytes(network_.links(), 0.0);
        std::vector<std::vector<Interval>> intervals(network_.links());
        for (std::uint32_t task = 0; task < network_.flows(); ++task) {
            for (const auto& use : network_.uses(task)) {
                if (carries_bytes(simulation_.graph, task, use.link)) {
                    bytes[use.link] += network_.flow(task).bytes * use.per_byte;
                    intervals[use.link].emplace_back(run_.start[task], run_.end[task]);
                }
            }
        }
        for (std::uint32_t link = 0; link < network_.links(); ++link) {
            if (bytes[link] > 0.0) {
                simulation_.links.push_back({link, bytes[link], covered(intervals[link]), bytes[link] / network_.rate(link) / run_.makespan});
            }
        }
    }

    void sum_lanes() {
        simulation_.lanes.resize(simulation_.graph.lanes.size());
        std::vector<std::vector<std::pair<Interval, std::uint32_t>>> tasks(simulation_.lanes.size());
        for (std::uint32_t task = 0; task < network_.flows(); ++task) {
            tasks[simulation_.graph.tasks[task].lane].push_back({{run_.start[task], run_.end[task]}, task});
        }
        for (std::uint32_t lane = 0; lane < tasks.size(); ++lane) {
            auto& usage = simulation_.lanes[lane];
            usage.lane = lane;
            std::ranges::sort(tasks[lane]);
            usage.first_start = tasks[lane].empty() ? 0.0 : tasks[lane].front().first.first;
            double reached = 0.0;
            for (const auto& [interval, task] : tasks[lane]) {
                if (interval.first > reached) {
                    const auto before = latest_before(task);
                    usage.waited[before == RateSegment::kOwnCap ? activity_of(task) : activity_of(before)] += interval.first - reached;
                }
                usage.busy_seconds += std::max(0.0, interval.second - std::max(interval.first, reached));
                reached = std::max(reached, interval.second);
            }
            usage.last_end = reached;
        }
    }

    bool keeps_segments_;
    Simulation& simulation_;
    const FlowNetwork& network_;
    FlowRun& run_;
    std::vector<std::size_t> first_segment_;
};

}  // namespace

bool carries_bytes(const TaskGraph& graph, std::uint32_t task, std::uint32_t link) noexcept {
    const auto& entry = graph.tasks[task];
    const auto port = graph.links[link].port;
    return entry.bytes > 0.0 && port != Port::kHost && (port == Port::kCopy) != is_on_links(entry.activity);
}

std::string_view name_of(Port port) noexcept {
    switch (port) {
        case Port::kNicOut:
            return "NIC out";
        case Port::kNicIn:
            return "NIC in";
        case Port::kNvlinkOut:
            return "NVLink out";
        case Port::kNvlinkIn:
            return "NVLink in";
        case Port::kCopy:
            return "copy engine";
        case Port::kHost:
            return "host";
        case Port::kUplink:
            return "uplink";
        case Port::kDownlink:
            break;
    }
    return "downlink";
}

std::string describe_ranks(const std::vector<RankId>& members, const Cluster& cluster) {
    const bool is_trainer = cluster.is_trainer(members.front());
    const std::string side = is_trainer ? "trainer" : "generator";
    const auto shift = is_trainer ? 0 : cluster.train_gpus();
    const auto first = members.front().index() - shift;
    const auto last = members.back().index() - shift;
    if (members.size() == 1) {
        return side + " " + std::to_string(first);
    }
    if (members.size() == (is_trainer ? cluster.train_gpus() : cluster.generate_gpus())) {
        return "all " + side + "s";
    }
    const bool is_range = last - first + 1 == members.size();
    return is_range ? side + "s " + std::to_string(first) + "-" + std::to_string(last)
                    : std::to_string(members.size()) + " " + side + "s from " + std::to_string(first);
}

std::string describe_link(const TaskGraph& graph, std::uint32_t link, const Cluster& cluster) {
    const auto& owner = graph.links[link];
    if (owner.port == Port::kUplink || owner.port == Port::kDownlink) {
        return std::string{name_of(owner.port)} + " of pod " + std::to_string(owner.rank_class);
    }
    return std::string{name_of(owner.port)} + " of " + describe_ranks(graph.ranks_of(link), cluster);
}

namespace {

/// Runs a graph's network without the links that never limit; segments name links of the whole network.
Result<FlowRun> run_graph(const TaskGraph& graph, const FlowOptions& options) {
    const auto reduced = without_idle_links(graph.network);
    auto run = run_flows(reduced.network, options);
    if (run) {
        for (auto& segment : run->segments) {
            segment.limit = segment.limit == RateSegment::kOwnCap ? segment.limit : reduced.kept[segment.limit];
        }
    }
    return run;
}

}  // namespace

Result<Simulation> simulate(const Plan& plan, const Workload& workload, const Scenario& scenario, const SimulateOptions& options) {
    auto links_alone = options.graph;
    links_alone.is_cancelled = options.is_cancelled;
    Simulation simulation{make_task_graph(plan, workload, scenario, links_alone), {}, 0.0, {}, {}, {}, {}, {}};
    auto run = run_graph(simulation.graph, {.has_segments = true, .is_cancelled = options.is_cancelled});
    if (!run) {
        return fail(std::move(run.error()));
    }
    simulation.run = std::move(*run);
    Analysis{simulation, options.has_segments}.run();
    links_alone.has_software = false;
    const auto transfers = run_graph(make_task_graph(plan, workload, scenario, links_alone), {.is_cancelled = options.is_cancelled});
    if (!transfers) {
        return fail(Faults{transfers.error()});
    }
    simulation.transfer_seconds = transfers->makespan;
    return simulation;
}

}  // namespace refit
