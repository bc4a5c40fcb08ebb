// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "refit/plan.hpp"
#include "refit/published.hpp"
#include "refit/report.hpp"
#include "refit/scenario.hpp"
#include "refit/workload.hpp"

namespace refit {

/// What to compare, and with what.
struct CompareRequest {
    std::vector<Method> methods{Method::kGatherBroadcast, Method::kHybrid, Method::kDirect, Method::kStriped,
                                 Method::kOptimal};
    std::vector<Seconds> steps{Seconds{60.0}, Seconds{120.0}, Seconds{300.0}};
    std::span<const PublishedRecord> published;
    bool has_simulation = false;  ///< Also run each plan event by event.
    /// Asked now and then while a plan runs; true leaves the rest without simulated times. May be empty.
    std::function<bool()> is_cancelled;
    /// Called before each piece of work with its name and the share done. May be empty.
    std::function<void(std::string_view, double)> progress;
};

/// Predicts every method for the scenario: times with ranges, traffic, bound, memory, what to try, what it is worth.
/// Cost: in tensor classes and ranks, not in tensors.
[[nodiscard]] Report compare(const Scenario& scenario, const CompareRequest& request);

/// The same of one plan that there is already, whatever methods the request names.
[[nodiscard]] Report report_on(const Plan& plan, const Scenario& scenario, const Workload& workload, const CompareRequest& request);

/// Puts the times of a simulation into the entry of a method: its kind and the error beside published times become
/// the simulation's. Pre: the entry is not refused.
void set_simulated(MethodReport& entry, const SimulatedTimes& times);

}  // namespace refit
