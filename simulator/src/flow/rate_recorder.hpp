// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "limits.hpp"
#include "refit/flow_run.hpp"

namespace refit::flow {

/// Keeps the course of each flow's rate, where that is wanted.
class RateRecorder {
public:
    RateRecorder(const FlowNetwork& network, const Limits& limits, bool is_on)
        : network_{network}, limits_{limits}, open_(is_on ? network.flows() : 0) {}

    [[nodiscard]] bool is_on() const noexcept { return !open_.empty(); }

    /// From `now` on the flow runs at its owner's level.
    void set(std::uint32_t flow, std::uint32_t owner, double level, double now);
    void end(std::uint32_t flow, double now);
    /// By flow, then by time.
    [[nodiscard]] std::vector<RateSegment> take();

private:
    struct Open {
        double since = 0.0;
        double rate = -1.0;  ///< Below zero: the flow does not run.
        std::uint32_t limit = 0;
    };
    void close(std::uint32_t flow, double now);

    const FlowNetwork& network_;
    const Limits& limits_;
    std::vector<Open> open_;  ///< By flow.
    std::vector<RateSegment> segments_;
};

}  // namespace refit::flow
