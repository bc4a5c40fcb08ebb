// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "refit/plan.hpp"
#include "refit/program_schedule.hpp"
#include "refit/workload.hpp"

namespace refit::program {

/// Of all that programs depend on. Cost: in shards, transfers and hops.
[[nodiscard]] std::uint64_t digest_of(const Plan& plan,
                                      const Workload& workload,
                                      std::uint32_t train_gpus,
                                      const Settings& settings);

}  // namespace refit::program
