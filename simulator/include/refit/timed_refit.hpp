// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "refit/estimate.hpp"
#include "refit/loads.hpp"
#include "refit/result.hpp"
#include "refit/scenario.hpp"

namespace refit {

/// A refit that somebody timed, reduced to what its closed form needs: nothing of it depends on a constant.
struct TimedRefit {
    std::vector<std::string> ids;  ///< Of the records that timed it.
    std::string engine;            ///< As the records name it: "nemo-rl-reshard".
    std::string constants_of;      ///< The engine file whose constants it has: "nemo-rl".
    std::string model;             ///< Id.
    std::string gpu;               ///< Of the generators: "H100".
    std::string layouts;           ///< Of both sides; empty: other than those of any other refit.
    PlanLoads loads;
    Setting setting;
    Seconds low;  ///< Over all records. Invariant: 0 < low <= high.
    Seconds high;
    double weight = 1.0;  ///< Of its squared error: 1 for tier A, 1/4 for tier B.
};

/// Middle of what was timed, in logarithms. Unit: log of seconds.
[[nodiscard]] double log_middle(const TimedRefit& refit);

/// Variance of what was timed, in logarithms, where its range counts as a uniform one.
[[nodiscard]] double range_variance(const TimedRefit& refit);

}  // namespace refit
