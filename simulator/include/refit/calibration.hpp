// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "refit/engine.hpp"
#include "refit/estimate.hpp"
#include "refit/timed_refit.hpp"

namespace refit {

/// A constant that a fit may change.
struct FitParameter {
    std::string name;
    Constant EngineConstants::*member = nullptr;
    ConstantPrior prior;
    ConstantBounds bounds;
};

/// The constants with a prior that take part in a reading: those of kind "fitted" and "prior", with an
/// "alternative" in place of `finalize_per_expert` or `bulk_parameter_cost` where the reading has one.
[[nodiscard]] std::vector<FitParameter> fit_parameters(const EngineConstants& constants,
                                                       const Reading& reading = {});

/// The readings that have a constant of their own, an "alternative".
[[nodiscard]] std::vector<Reading> readings_with_constants();

struct FitOptions {
    double row_error = 0.12;   ///< What one timed refit may be off by, one standard deviation, in logarithms.
    double row_error_worth = 4.0;  ///< As many refits as that is worth where it is estimated.
    std::uint32_t starts = 6;  ///< The priors' middle, and draws from the priors.
    std::uint64_t seed = 1;
    double finest_step = 1e-6;  ///< Where the search along single directions ends, in logarithms.
    Reading reading;
};

/// A fit: the constants that make the predictions most likely, given the priors.
struct Fit {
    std::vector<double> values;  ///< Of the parameters, in their base units.
    std::vector<double>
        covariance;     ///< Of their logarithms, row by row, as of a linear model with these slopes.
    double cost = 0.0;  ///< Sum of squared weighted residuals, those of the priors included.
    /// Part of what is known of a parameter (column) that comes from each timed refit, then from each prior
    /// (rows); every column sums to 1.
    std::vector<double> shares;
    /// One standard deviation of each parameter's logarithm, were there no refit of the configuration (model,
    /// GPU and pair of layouts) that tells it most: its prior's where one configuration alone tells it.
    std::vector<double> spreads;
    /// Of each refit the logarithm of prediction over `log_middle`; 0 where it has no weight.
    std::vector<double> misses;
    [[nodiscard]] double variance(std::size_t a, std::size_t b) const {
        return covariance[a * values.size() + b];
    }
    [[nodiscard]] double share(std::size_t row, std::size_t of) const {
        return shares[row * values.size() + of];
    }
};

/// Bounded weighted least squares in logarithms. The residual of a timed refit is the logarithm of prediction
/// over `log_middle`, in units of `row_error` and the range's spread, sqrt(row_error^2 + h^2 / 3) with h half
/// the range's logarithm: a range counts as a uniform one. That of a prior is the logarithm of value over
/// prior in units of its spread. Levenberg-Marquardt from several starts, then a search along single
/// directions, since max() makes kinks. The same input gives the same output. Pre: one weight a refit, at
/// least one parameter. Cost: some thousand closed forms a refit and start; 5 ms for 20 refits and 9
/// parameters.
[[nodiscard]] Fit fit_constants(std::span<const TimedRefit> refits,
                                std::span<const double> weights,
                                std::span<const FitParameter> parameters,
                                const FitOptions& options = {});

/// What refits turn out to be off by: the error with which the sum of their squared residuals is what is expected
/// of as many refits less what they tell of the constants, `row_error` counting as `row_error_worth` more (Paule
/// and Mandel's estimate of a variance between measurements, with a prior). Pre: as above. Cost: some fits.
[[nodiscard]] double estimated_row_error(std::span<const TimedRefit> refits,
                                         std::span<const double> weights,
                                         std::span<const FitParameter> parameters,
                                         const FitOptions& options = {});

/// The weights that the refits name themselves.
[[nodiscard]] std::vector<double> weights_of(std::span<const TimedRefit> refits);

/// 68 % interval of one parameter: where the cost is 1 above the least with all others fitted anew, or the
/// bound.
struct FitInterval {
    double low = 0.0;
    double high = 0.0;
    bool is_low_bound = false;  ///< The bound, not the cost, ends it.
    bool is_high_bound = false;
};
[[nodiscard]] FitInterval profile_interval(std::span<const TimedRefit> refits,
                                           std::span<const FitParameter> parameters,
                                           const Fit& fit,
                                           std::size_t parameter,
                                           const FitOptions& options = {});

/// Values of the parameters in fits to refits drawn with replacement, one row a draw.
[[nodiscard]] std::vector<std::vector<double>> bootstrap(std::span<const TimedRefit> refits,
                                                         std::span<const FitParameter> parameters,
                                                         std::size_t draws,
                                                         const FitOptions& options = {});

/// Least share of what is known of a constant that makes a refit one that identifies it.
inline constexpr double kIdentifyingShare = 0.05;

/// The constants with a fit's values, intervals of its `spreads` and correlations.
[[nodiscard]] EngineConstants constants_with(EngineConstants constants,
                                             std::span<const FitParameter> parameters,
                                             const Fit& fit);

}  // namespace refit
