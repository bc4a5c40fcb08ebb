// SPDX-License-Identifier: Apache-2.0
#include "refit/simulate.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "graph_builder.hpp"
#include "refit/link_reduction.hpp"

namespace refit {
namespace {

/// Length of a union of intervals, which come by their beginnings.
struct Cover {
    double length = 0.0;
    double reached = 0.0;

    void add(double from, double to) noexcept {
        length += std::max(0.0, to - std::max(from, reached));
        reached = std::max(reached, to);
    }
};

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
        sort_tasks();
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
    void sort_tasks() {
        by_start_.resize(network_.flows());
        std::iota(by_start_.begin(), by_start_.end(), 0U);
        std::ranges::sort(by_start_, {}, [&](std::uint32_t task) {
            return std::tuple{run_.start[task], run_.end[task], task};
        });
    }

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
        std::array<Cover, kActivities> covers;
        for (const auto task : by_start_) {
            covers[activity_of(task)].add(run_.start[task], run_.end[task]);
        }
        std::ranges::transform(covers, simulation_.busy.begin(), &Cover::length);
    }

    void sum_links() {
        std::vector<double> bytes(network_.links(), 0.0);
        for (std::uint32_t task = 0; task < network_.flows(); ++task) {
            for (const auto& use : network_.uses(task)) {
                if (carries_bytes(simulation_.graph, task, use.link)) {
                    bytes[use.link] += network_.flow(task).bytes * use.per_byte;
                }
            }
        }
        std::vector<Cover> covers(network_.links());
        for (const auto task : by_start_) {
            for (const auto& use : network_.uses(task)) {
                if (carries_bytes(simulation_.graph, task, use.link)) {
                    covers[use.link].add(run_.start[task], run_.end[task]);
                }
            }
        }
        for (std::uint32_t link = 0; link < network_.links(); ++link) {
            if (bytes[link] > 0.0) {
                const auto share = bytes[link] / network_.rate(link) / run_.makespan;
                simulation_.links.push_back({link, bytes[link], covers[link].length, share});
            }
        }
    }

    void sum_lanes() {
        simulation_.lanes.resize(simulation_.graph.lanes.size());
        for (std::uint32_t lane = 0; lane < simulation_.lanes.size(); ++lane) {
            simulation_.lanes[lane].lane = lane;
        }
        std::vector<Cover> covers(simulation_.lanes.size());
        std::vector<bool> has_begun(simulation_.lanes.size(), false);
        for (const auto task : by_start_) {
            const auto lane = simulation_.graph.tasks[task].lane;
            auto& usage = simulation_.lanes[lane];
            if (!has_begun[lane]) {
                has_begun[lane] = true;
                usage.first_start = run_.start[task];
            }
            if (run_.start[task] > covers[lane].reached) {
                const auto before = latest_before(task);
                usage.waited[before == RateSegment::kOwnCap ? activity_of(task) : activity_of(before)] +=
                    run_.start[task] - covers[lane].reached;
            }
            covers[lane].add(run_.start[task], run_.end[task]);
        }
        for (std::uint32_t lane = 0; lane < simulation_.lanes.size(); ++lane) {
            simulation_.lanes[lane].busy_seconds = covers[lane].length;
            simulation_.lanes[lane].last_end = covers[lane].reached;
        }
    }

    bool keeps_segments_;
    Simulation& simulation_;
    const FlowNetwork& network_;
    FlowRun& run_;
    std::vector<std::size_t> first_segment_;
    std::vector<std::uint32_t> by_start_;  ///< Tasks by start, then by end.
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
    const auto reduced = without_idle_links(graph.network, graph.lane_of_tasks());
    auto run = run_flows(reduced.network, options);
    if (run) {
        for (auto& segment : run->segments) {
            segment.limit = segment.limit == RateSegment::kOwnCap ? segment.limit : reduced.link_in_whole(segment.flow, segment.limit);
        }
    }
    return run;
}

}  // namespace

Result<Simulation> simulate(const Plan& plan, const Workload& workload, const Scenario& scenario, const SimulateOptions& options) {
    constexpr std::size_t kManyTasks = 100'000;  // From here on a second thread is worth while.
    // Only this thread asks the caller whether to stop; the second looks at what was answered.
    std::atomic<bool> stops{false};
    const std::function<bool()> ask = [&] {
        stops = stops || (options.is_cancelled && options.is_cancelled());
        return stops.load();
    };
    auto whole = options.graph;
    whole.is_cancelled = ask;
    GraphMemo memo;
    Simulation simulation{make_task_graph(plan, workload, scenario, whole, memo), {}, 0.0, {}, {}, {}, {}, {}};
    const bool has_second = simulation.graph.tasks.size() > kManyTasks;
    auto links_alone = options.graph;
    links_alone.has_software = false;
    links_alone.is_cancelled = has_second ? std::function<bool()>{[&] { return stops.load(); }} : ask;
    auto transfers = std::async(has_second ? std::launch::async : std::launch::deferred, [&] {
        return run_graph(make_task_graph(plan, workload, scenario, links_alone, memo), {.is_cancelled = links_alone.is_cancelled});
    });
    auto run = run_graph(simulation.graph, {.has_segments = true, .is_cancelled = ask});
    if (!run) {
        stops = true;
        return fail(std::move(run.error()));
    }
    simulation.run = std::move(*run);
    Analysis{simulation, options.has_segments}.run();
    while (transfers.wait_for(std::chrono::milliseconds{20}) == std::future_status::timeout) {
        ask();
    }
    const auto alone = transfers.get();
    if (!alone) {
        return fail(Faults{alone.error()});
    }
    simulation.transfer_seconds = alone->makespan;
    return simulation;
}

}  // namespace refit
