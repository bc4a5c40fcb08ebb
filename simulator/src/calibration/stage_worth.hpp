// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "refit/calibrate.hpp"

namespace refit {

/// For each parameter the stage of one of the refits whose time, known to 5 %, would narrow it most.
[[nodiscard]] std::vector<StageWorth> stages_worth_timing(std::span<const TimedRefit> refits,
                                                          std::span<const FitParameter> parameters,
                                                          const Fit& fit,
                                                          const EngineConstants& constants);

}  // namespace refit
