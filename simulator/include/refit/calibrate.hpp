// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "refit/calibration.hpp"
#include "refit/left_out.hpp"

namespace refit {

/// Two constants of which the refits tell little but a combination.
struct LikePair {
    std::string first;
    std::string second;
    double correlation = 0.0;  ///< Of the errors of their logarithms.
};

/// What timing one stage of one refit would tell.
struct StageWorth {
    std::string refit;       ///< Its first record.
    std::string stage;       ///< "loading": a term of the estimate.
    std::string constant;    ///< What it narrows most.
    double narrowing = 1.0;  ///< Width of that constant's interval (in logarithms) after over before.
    double bits = 0.0;       ///< What it tells of all constants together.
};

/// A timed refit beside what the constants say, with and without it.
struct CalibratedRefit {
    std::vector<std::string> ids;
    Seconds seconds;
    double error = 0.0;  ///< As `error_beside`.
    LeftOut left_out;
};

/// An engine's constants fitted to timed refits, and how well they are known.
struct Calibration {
    EngineConstants constants;        ///< With values, intervals, kinds, sources and identifying records.
    std::vector<std::string> fitted;  ///< Names of those that the fit was free to change.
    std::vector<double>
        from_refits;  ///< Part of what is known of each that the refits tell; the rest: priors.
    double row_error = 0.0;  ///< What a refit is off by, one standard deviation, in logarithms.
    std::vector<CalibratedRefit> refits;   ///< As they came.
    std::vector<LikePair> alike;           ///< The strongest first.
    std::vector<StageWorth> worth_timing;  ///< The best stage for each constant that gains, the best first.
};

struct CalibrateOptions {
    FitOptions fit;
    std::string source = "fit";    ///< What the sources of the constants begin with.
    bool sets_model_error = true;  ///< Else that of the constants stays.
};

/// Fits the constants that have a prior. A constant is "fitted" where the refits tell at least half of what
/// is known of it, else "prior"; the records of refits that tell 5 % or more identify it. Its interval is
/// where the cost is 1 above the least, but its prior's where one refit alone identifies it. An alternative
/// gets the value and interval of the fit in which it stands for `finalize_per_expert`. Figures are rounded
/// to three digits of their units, correlations to 0.01. Pre: at least one refit. Cost: about a second for 20
/// refits and 9 parameters.
[[nodiscard]] Calibration calibrate(std::span<const TimedRefit> refits,
                                    const EngineConstants& constants,
                                    const CalibrateOptions& options = {});

}  // namespace refit
