// SPDX-License-Identifier: Apache-2.0
#include "refit/flow_run.hpp"

#include <string>
#include <utility>

#include "flow_engine.hpp"
#include "quotient.hpp"

namespace refit {

Result<FlowRun> run_flows(const FlowNetwork& network, const FlowOptions& options) {
    constexpr double kMaxTolerance = 0.1;
    if (!(options.tolerance >= 0.0 && options.tolerance <= kMaxTolerance)) {
        return fail(ErrorCode::kInvalidInput,
                    "flow-tolerance",
                    "the tolerance " + std::to_string(options.tolerance) + " is not from 0 to 0.1");
    }
    if (auto faults = network.faults(); !faults.empty()) {
        return fail(std::move(faults));
    }
    if (options.has_quotient) {
        if (const auto quotient = flow::find_quotient(network, options.is_cancelled)) {
            const auto run = flow::FlowEngine{quotient->network, options}.run();
            if (run) {
                return flow::expand(network, *quotient, *run);
            }
            if (run.error().front().rule == flow::kCancelledRule) {
                return fail(run.error());
            }
            // A link stays down: the flows and links of the network itself are to be named.
        }
    }
    return flow::FlowEngine{network, options}.run();
}

}  // namespace refit
