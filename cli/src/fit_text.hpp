// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "options.hpp"
#include "refit/calibrate.hpp"
#include "refit/engine.hpp"
#include "refit/link_constants.hpp"
#include "refit/timed_refit.hpp"

namespace refit::cli {

/// A fit as it is shown.
struct FitOutcome {
    Engine engine;
    EngineConstants constants;
    std::span<const TimedRefit> refits;
    const Calibration* calibration = nullptr;  ///< Null: nothing was fitted.
    const LinkConstants* links = nullptr;      ///< Null: no log was read.
};

/// The constants, how well they are known, and what would tell more. At most 100 columns wide.
[[nodiscard]] std::string fit_table(const FitOutcome& outcome);
/// The constants as kCsv or kMarkdown.
[[nodiscard]] std::string fit_rows(const FitOutcome& outcome, Format format);

}  // namespace refit::cli
