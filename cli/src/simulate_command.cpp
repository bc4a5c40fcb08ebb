// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "simulate_flows.hpp"

namespace refit::cli {

int run_simulate(const Options& options) {
    if (options.flows.empty()) {
        return usage_error("simulate what? --flows FILE names a list of flows (docs/flows.md)");
    }
    return run_simulate_flows(options);
}

}  // namespace refit::cli
