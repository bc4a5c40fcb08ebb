// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "refit/report.hpp"
#include "refit/scenario.hpp"

namespace refit::cli {

/// The comparison for people: at most 30 lines of 100 columns, plain ASCII. `target` is what the user compared, for
/// the commands at the end.
[[nodiscard]] std::string compare_table(const Report& report, const Scenario& scenario, const std::string& target,
                                        bool has_own_step);

/// "DeepSeek-V3  671.03 B parameters, BF16, 1.342 TB in 45,395 tensors (MTP left out)".
[[nodiscard]] std::string moved_line(const Scenario& scenario);

/// "gather-and-broadcast", "reshard, NeMo RL (hybrid)" …
[[nodiscard]] std::string title_of(const MethodReport& method, const Scenario& scenario);

}  // namespace refit::cli
