// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "refit/calibration.hpp"

namespace refit {
namespace {

/// The error with which a fit's misses are as large as `degrees` free ones are on average.
double balancing_error(std::span<const TimedRefit> refits,
                       std::span<const double> weights,
                       const Fit& fit,
                       double degrees,
                       const FitOptions& options) {
    constexpr int kHalvings = 40;
    double low = 1e-4;
    double high = 10.0;
    for (int i = 0; i < kHalvings; ++i) {
        const auto error = std::sqrt(low * high);
        const auto expected = options.row_error / error;
        double sum = options.row_error_worth * expected * expected;
        for (std::size_t k = 0; k < refits.size(); ++k) {
            sum += weights[k] * fit.misses[k] * fit.misses[k] / (error * error + range_variance(refits[k]));
        }
        (sum > degrees + options.row_error_worth ? low : high) = error;
    }
    return std::sqrt(low * high);
}

}  // namespace

double estimated_row_error(std::span<const TimedRefit> refits,
                           std::span<const double> weights,
                           std::span<const FitParameter> parameters,
                           const FitOptions& options) {
    constexpr int kRounds = 20;
    constexpr double kStable = 3e-3;
    auto with = options;
    with.starts = 1;
    with.finest_step = std::max(options.finest_step, 1e-3);
    for (int round = 0; round < kRounds; ++round) {
        const auto fit = fit_constants(refits, weights, parameters, with);
        double degrees = 0.0;
        for (std::size_t i = 0; i < refits.size(); ++i) {
            degrees += weights[i];
            for (std::size_t k = 0; k < parameters.size(); ++k) {
                degrees -= fit.share(i, k);
            }
        }
        const auto error = balancing_error(refits, weights, fit, degrees, options);
        const bool is_stable = std::abs(error / with.row_error - 1.0) < kStable;
        with.row_error = error;
        if (is_stable) {
            break;
        }
    }
    return with.row_error;
}

}  // namespace refit
