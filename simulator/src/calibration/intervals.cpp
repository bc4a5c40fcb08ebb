// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "log_problem.hpp"
#include "refit/calibration.hpp"

namespace refit {
namespace {

/// The least cost with one parameter held.
class Profile {
public:
    Profile(LogProblem problem, Eigen::Index parameter, Eigen::VectorXd best, const FitOptions& options)
        : problem_{std::move(problem)}, parameter_{parameter}, best_{std::move(best)}, options_{options}, limit_{problem_.cost(best_) + 1.0} {}

    /// Where the cost is 1 above the least, between the best value and `bound`; the bound if it is nowhere.
    double edge(double bound, bool& is_bound) {
        constexpr double kFarthest = 8.0;  // Spreads of the prior.
        constexpr int kHalvings = 12;
        const auto from = best_[parameter_];
        const auto reach = kFarthest * problem_.spread()[parameter_];
        auto outside = std::clamp(bound, from - reach, from + reach);
        auto inside = from;
        is_bound = least_cost(outside) <= limit_;
        if (is_bound) {
            return outside;
        }
        for (int i = 0; i < kHalvings; ++i) {
            const auto middle = (inside + outside) / 2.0;
            (least_cost(middle) <= limit_ ? inside : outside) = middle;
        }
        return (inside + outside) / 2.0;
    }

private:
    double least_cost(double value) {
        auto held = problem_;
        held.pin(parameter_, value);
        auto start = best_;
        start[parameter_] = value;
        return held.cost(descend(held, start, std::max(options_.finest_step, 1e-4)));
    }

    LogProblem problem_;
    Eigen::Index parameter_;
    Eigen::VectorXd best_;
    const FitOptions& options_;
    double limit_;
};

}  // namespace

FitInterval profile_interval(std::span<const TimedRefit> refits,
                             std::span<const FitParameter> parameters,
                             const Fit& fit,
                             std::size_t parameter,
                             const FitOptions& options) {
    const auto weights = weights_of(refits);
    LogProblem problem{refits, weights, parameters, options};
    Eigen::VectorXd best(problem.parameters());
    for (Eigen::Index k = 0; k < best.size(); ++k) {
        best[k] = std::log(fit.values[static_cast<std::size_t>(k)]);
    }
    const auto at = static_cast<Eigen::Index>(parameter);
    const auto low = problem.low()[at];
    const auto high = problem.high()[at];
    Profile profile{std::move(problem), at, std::move(best), options};
    FitInterval interval;
    interval.low = std::exp(profile.edge(low, interval.is_low_bound));
    interval.high = std::exp(profile.edge(high, interval.is_high_bound));
    return interval;
}

EngineConstants constants_with(EngineConstants constants,
                               std::span<const FitParameter> parameters,
                               const Fit& fit) {
    constants.correlations.clear();
    for (std::size_t a = 0; a < parameters.size(); ++a) {
        auto& constant = constants.*parameters[a].member;
        const auto spread = std::exp(fit.spreads[a]);
        constant.value = fit.values[a];
        constant.low = constant.value / spread;
        constant.high = constant.value * spread;
        for (std::size_t b = 0; b < a; ++b) {
            const auto scale = std::sqrt(fit.variance(a, a) * fit.variance(b, b));
            constants.correlations.push_back(
                {parameters[b].member, parameters[a].member, fit.variance(a, b) / scale});
        }
    }
    return constants;
}

}  // namespace refit
