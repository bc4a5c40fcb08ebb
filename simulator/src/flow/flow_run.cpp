// SPDX-License-Identifier: Apache-2.0
#include "refit/flow_run.hpp"

#include <utility>

#include "flow_engine.hpp"

namespace refit {

Result<FlowRun> run_flows(const FlowNetwork& network, const FlowOptions& options) {
    if (auto faults = network.faults(); !faults.empty()) {
        return fail(std::move(faults));
    }
    return flow::FlowEngine{network, options}.run();
}

}  // namespace refit
