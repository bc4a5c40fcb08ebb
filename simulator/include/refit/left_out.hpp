// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "refit/calibration.hpp"

namespace refit {

/// What constants that have not seen a refit say of it.
struct LeftOut {
    std::size_t refit = 0;  ///< Its index.
    Seconds seconds;
    Seconds low;  ///< 80 % range.
    Seconds high;
    double error = 0.0;  ///< As `error_beside`.
};

/// Constants fitted anew to the refits with a weight, every reading's alternative too, from no start that
/// knows of the others. `constants` lend the priors and what is not fitted.
[[nodiscard]] EngineConstants refitted(std::span<const TimedRefit> refits,
                                       std::span<const double> weights,
                                       const EngineConstants& constants,
                                       const FitOptions& options = {});

/// For each refit the constants that have seen all others.
[[nodiscard]] std::vector<EngineConstants> refitted_without_each(std::span<const TimedRefit> refits,
                                                                 const EngineConstants& constants,
                                                                 const FitOptions& options = {});

/// Each refit as the constants that have not seen it say. Pre: those of `refitted_without_each`.
[[nodiscard]] std::vector<LeftOut> leave_each_out(std::span<const TimedRefit> refits,
                                                  std::span<const EngineConstants> without);

/// The refits of `block`, left out together.
[[nodiscard]] std::vector<LeftOut> leave_block_out(std::span<const TimedRefit> refits,
                                                   std::span<const std::size_t> block,
                                                   const EngineConstants& constants,
                                                   const FitOptions& options = {});

/// Predicts one refit with other constants.
[[nodiscard]] LeftOut predict_with(std::span<const TimedRefit> refits,
                                   std::size_t refit,
                                   const EngineConstants& constants);

/// Whether the published range meets the predicted one.
[[nodiscard]] bool is_covered(const TimedRefit& refit, const LeftOut& prediction);

/// Of fewer refits, one is more than the tenth that ranges may miss.
inline constexpr std::size_t kFewestForCoverage = 10;

/// The model error: what refits are off by, rounded up to a multiple of 0.005; of `kFewestForCoverage` refits and
/// more the largest such multiple up to it with which the 80 % ranges of the left out hold the middles of at most
/// 90 % of the refits, by weight. That is the wide end of what is right, since refits that served to choose the
/// mechanisms are met too well. Pre: `without` as above, 0 < row_error.
[[nodiscard]] double model_error_of(std::span<const TimedRefit> refits,
                                    std::vector<EngineConstants> without,
                                    double row_error);

}  // namespace refit
