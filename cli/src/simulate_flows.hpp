// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "options.hpp"

namespace refit::cli {

/// Runs the plain list of flows that --flows names and writes when each ends. Returns the exit code.
int run_simulate_flows(const Options& options);

}  // namespace refit::cli
