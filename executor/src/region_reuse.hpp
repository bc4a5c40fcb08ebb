// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "refit/program.hpp"

namespace refit::exec {

/// By region, how many waves must be complete before it may be used: those of scratch regions that had its
/// memory before.
[[nodiscard]] std::vector<std::uint32_t> waves_before(const program::RankProgram& program);

}  // namespace refit::exec
