// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "refit/result.hpp"
#include "refit/task_graph.hpp"

namespace refit {

/// How unlike the ranks of a job are from refit to refit. Logarithms of rates and of host times are taken to
/// be normal, so a spread of 0.05 makes one rank in six at least 5 % slow.
struct Jitter {
    double links = 0.0;  ///< Spread of each port's rate, for a whole refit. Range: 0 or more.
    double hosts = 0.0;  ///< Spread of each task's time on each host. Range: 0 or more.
    std::uint32_t samples = 50;
    std::uint64_t seed = 1;
};

/// Times of the samples.
struct JitterTimes {
    std::vector<double> seconds;  ///< Ascending, one a sample.

    /// The sample below which `share` of them lie. Pre: there are samples. Range of `share`: 0 to 1.
    [[nodiscard]] double quantile(double share) const;
};

/// Runs a graph again and again with rates and times drawn anew; the same seed gives the same samples.
///
/// Ranks of a class wait for each other at every collective, so what counts is the slowest of them: a class
/// of n ranks draws the lowest of n rates, and a task that n hosts do side by side the longest of n times.
/// Source: order statistics; the largest of n draws has the distribution function F^n.
/// Errors: as run_flows.
[[nodiscard]] Result<JitterTimes> sample_jitter(const TaskGraph& graph,
                                                const Cluster& cluster,
                                                const Jitter& jitter,
                                                const std::function<bool()>& is_cancelled = {});

}  // namespace refit
