// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

namespace refit::bench {

/// A refit that is measured, and what one `refit compare` of it may take.
struct Case {
    std::string name;
    std::string scenario;
    std::string train_gpus;  ///< Empty: the scenario's.
    std::string generate_gpus;
    double target_seconds;
    double target_megabytes;
};

/// Source of the targets: what feels immediate at a prompt, and what any laptop has.
inline const std::array kCases{Case{"deepseek_v3", "deepseek-v3-h100", "", "", 0.15, 100.0},
                               Case{"kimi_k3_8192_gpus", "kimi-k3-h100", "4096", "4096", 0.5, 100.0}};

}  // namespace refit::bench
