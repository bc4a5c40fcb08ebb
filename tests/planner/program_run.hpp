// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "refit/program.hpp"
#include "refit/workload.hpp"

namespace refit::testing_support {

/// Runs the programs of all ranks on arrays of bytes that say which byte of which element each is, wave by
/// wave; what a wave writes is seen from the next one on. Looks at regions by their place in memory alone.
/// Empty where all ends of each operation agree, all bounds are kept, and every wanted element arrives,
/// written once; else the first thing that is wrong. `limit`: operations of a rank in a wave.
[[nodiscard]] std::string run_programs(const std::vector<program::RankProgram>& programs,
                                       const Workload& workload,
                                       std::uint32_t train_gpus,
                                       std::uint32_t limit);

}  // namespace refit::testing_support
