// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "limits.hpp"
#include "link_levels.hpp"
#include "rate_recorder.hpp"
#include "refit/flow_run.hpp"
#include "schedule.hpp"
#include "service_clocks.hpp"

namespace refit::flow {

/// The rule of the fault of a run that was cancelled.
inline constexpr const char* kCancelledRule = "cancelled";

/// Runs a network event by event. Pre: it has no faults.
/// Cost: an event takes time in the number of links whose level changes and of their flows.
class FlowEngine {
public:
    FlowEngine(const FlowNetwork& network, const FlowOptions& options);
    [[nodiscard]] Result<FlowRun> run();

private:
    void begin_due();
    void start(std::uint32_t flow);
    void finish(std::uint32_t flow, double end);
    void finish_due();
    [[nodiscard]] bool is_as_good_as_over(std::uint32_t flow, double level) const;
    [[nodiscard]] bool settle();
    void bring_up_clocks();
    void hand_over(std::uint32_t link);
    void own_fresh();
    void record();
    [[nodiscard]] Failure stuck() const;

    const FlowNetwork& network_;
    const FlowOptions& options_;
    Limits limits_;
    LinkLevels levels_;
    ServiceClocks clocks_;
    Schedule schedule_;
    RateRecorder recorder_;
    double now_ = 0.0;
    std::uint32_t running_ = 0;
    std::vector<std::uint32_t> fresh_;           ///< Started in this event.
    std::vector<std::uint32_t> leaving_;         ///< Scratch: flows that a link does not own any more.
    std::vector<std::uint32_t> due_;             ///< Scratch: owners of which a flow is over.
    std::vector<std::uint32_t> changed_owners_;  ///< Whose next end is to be foreseen anew.
    FlowRun run_;
};

}  // namespace refit::flow
