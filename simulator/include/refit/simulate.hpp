// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "refit/flow_run.hpp"
#include "refit/plan.hpp"
#include "refit/result.hpp"
#include "refit/scenario.hpp"
#include "refit/task_graph.hpp"
#include "refit/workload.hpp"

namespace refit {

/// A stretch of the critical path: the time in which one task kept all that follows waiting.
struct PathStep {
    std::uint32_t task = 0;
    double from = 0.0;  ///< Unit: s.
    double to = 0.0;
    /// The link that set its rate for most of it, or RateSegment::kOwnCap: a host, or a cap.
    std::uint32_t limit = RateSegment::kOwnCap;
};

/// What a link did.
struct LinkUsage {
    std::uint32_t link = 0;
    double bytes = 0.0;         ///< Through the port of one rank.
    double busy_seconds = 0.0;  ///< In which anything used it.
    double share = 0.0;         ///< Of what it could have carried over the whole refit. Range: 0 to 1.
};

/// What a lane did, and what it waited for before its next task.
struct LaneUsage {
    std::uint32_t lane = 0;
    double busy_seconds = 0.0;
    double first_start = 0.0;
    double last_end = 0.0;
    std::array<double, kActivities> waited{};  ///< By the activity of the task that it waited for longest. Unit: s.
};

/// The course of a refit.
struct Simulation {
    TaskGraph graph;
    FlowRun run;                     ///< By task.
    double transfer_seconds = 0.0;   ///< The links alone: no host, copy or fixed cost.
    std::vector<PathStep> path;      ///< The critical path, in order; its steps tile the time from 0 to the end.
    std::vector<LinkUsage> links;    ///< Those that carried anything.
    std::vector<LaneUsage> lanes;
    std::array<double, kActivities> critical{};  ///< Seconds of the critical path by activity; they sum to the total.
    std::array<double, kActivities> busy{};      ///< Seconds in which the activity ran anywhere.

    [[nodiscard]] double seconds() const noexcept { return run.makespan; }
};

struct SimulateOptions {
    GraphOptions graph;
    bool has_segments = false;           ///< Keep the course of every task's rate, in `run.segments`.
    std::function<bool()> is_cancelled;  ///< As FlowOptions has it.
};

/// Runs a plan event by event, a large one on two threads; only the caller's asks `is_cancelled`. Errors: as run_flows.
[[nodiscard]] Result<Simulation> simulate(const Plan& plan, const Workload& workload, const Scenario& scenario,
                                          const SimulateOptions& options = {});

/// Whether a task moves or copies bytes through a link that it uses: not where a host holds a NIC, or a relay drains.
[[nodiscard]] bool carries_bytes(const TaskGraph& graph, std::uint32_t task, std::uint32_t link) noexcept;

/// "NIC out", "NIC in", "NVLink out", "NVLink in", "copy engine", "host".
[[nodiscard]] std::string_view name_of(Port port) noexcept;
/// "NIC out of all trainers", "copy engine of trainers 0-15": who owns a link, for people.
[[nodiscard]] std::string describe_link(const TaskGraph& graph, std::uint32_t link, const Cluster& cluster);
/// "all trainers", "trainers 0-15", "16 generators from 3", "generator 3". Pre: ranks of one side, ascending, not none.
[[nodiscard]] std::string describe_ranks(const std::vector<RankId>& ranks, const Cluster& cluster);

}  // namespace refit
