// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "refit/flow_network.hpp"
#include "refit/result.hpp"
#include "refit/units.hpp"

namespace refit {

struct FlowOptions {
    bool has_quotient = true;   ///< Merge flows and links that symmetry makes alike; the times stay exact.
    bool has_segments = false;  ///< Keep the course of every flow's rate.
    /// Above 0: an approximation with fewer events. Flows that would be over within this part of the time so
    /// far, and of which at most this part of their bytes is left, end together: the rest of each runs at the
    /// rate that it has and slows nobody any more. So the times are exact but for at most this part of each
    /// flow's bytes, which load no link. Range: 0 to 0.1.
    double tolerance = 0.0;
    /// Asked now and then, at least every 100 ms; true, which it then stays, ends the run with an error.
    std::function<bool()> is_cancelled = nullptr;
};

/// A stretch in which a flow's rate is constant.
struct RateSegment {
    static constexpr std::uint32_t kOwnCap = 0xffffffff;

    std::uint32_t flow = 0;
    std::uint32_t limit = kOwnCap;  ///< The link that sets the rate, or the flow's own cap.
    Seconds from{0.0};
    Seconds to{0.0};
    double rate = 0.0;  ///< Unit: bytes per second.
};

/// When flows ran. All vectors are by flow.
struct FlowRun {
    std::vector<double> start;  ///< Of the first byte: after what it follows and its latency. Unit: s.
    std::vector<double> end;    ///< Of the last byte. Unit: s.
    double makespan = 0.0;      ///< The latest end. Unit: s.
    std::uint64_t events = 0;   ///< Moments at which rates were looked at.
    std::vector<RateSegment> segments;  ///< With `has_segments`: by flow, then by time.
};

/// Runs a network to its end, event by event; deterministic.
/// Errors: kInvalidInput with all of FlowNetwork::faults(); kInfeasible, naming flow and link, where a link
/// stays down under a flow; kInfeasible "cancelled"; kInvalidInput for a tolerance out of range.
[[nodiscard]] Result<FlowRun> run_flows(const FlowNetwork& network, const FlowOptions& options = {});

}  // namespace refit
