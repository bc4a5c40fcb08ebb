// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "copies.hpp"
#include "refit/exec/rank_storage.hpp"
#include "refit/exec/transport.hpp"

namespace refit::exec::host {

/// Runs all tasks once. Errors: those of a run (refit/exec/transport.hpp), with the rank that they are of in `failed`.
[[nodiscard]] Result<Iteration> run_work(const Work& work,
                                         const std::vector<RankStorage>& storage,
                                         const Job& job,
                                         std::uint32_t threads,
                                         std::vector<std::uint32_t>& failed);

}  // namespace refit::exec::host
