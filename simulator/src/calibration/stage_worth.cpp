// SPDX-License-Identifier: Apache-2.0
#include "stage_worth.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <Eigen/Dense>

namespace refit {
namespace {

/// What a stage's timer may be off by.
constexpr double kTimerError = 0.05;
/// Of slopes, in logarithms.
constexpr double kStep = 0.01;
/// A constant whose interval stays wider than this is not worth the timing.
constexpr double kLeastNarrowing = 0.9;

/// Seconds of each term of a refit.
std::map<std::string, double> stages_of(const TimedRefit& refit, const Setting& setting) {
    std::map<std::string, double> stages;
    for (const auto& term : estimate(refit.loads, setting).terms) {
        stages[term.name] += term.seconds.value();
    }
    return stages;
}

/// Slopes of the logarithm of each stage over those of the parameters.
std::map<std::string, Eigen::VectorXd> slopes_of(const TimedRefit& refit,
                                                 std::span<const FitParameter> parameters,
                                                 Setting setting) {
    std::map<std::string, Eigen::VectorXd> slopes;
    const auto count = static_cast<Eigen::Index>(parameters.size());
    for (const auto& [name, seconds] : stages_of(refit, setting)) {
        slopes.emplace(name, Eigen::VectorXd::Zero(count));
    }
    for (Eigen::Index k = 0; k < count; ++k) {
        auto& value = (setting.constants.*parameters[static_cast<std::size_t>(k)].member).value;
        const auto middle = value;
        value = middle * std::exp(kStep);
        const auto above = stages_of(refit, setting);
        value = middle * std::exp(-kStep);
        const auto below = stages_of(refit, setting);
        value = middle;
        for (auto& [name, slope] : slopes) {
            if (above.contains(name) && below.contains(name)) {
                slope[k] = std::log(above.at(name) / below.at(name)) / (2.0 * kStep);
            }
        }
    }
    return slopes;
}

}  // namespace

std::vector<StageWorth> stages_worth_timing(std::span<const TimedRefit> refits,
                                            std::span<const FitParameter> parameters,
                                            const Fit& fit,
                                            const EngineConstants& constants) {
    const auto count = static_cast<Eigen::Index>(parameters.size());
    const Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> covariance{
        fit.covariance.data(), count, count};
    std::vector<StageWorth> best(parameters.size());
    for (const auto& refit : refits) {
        auto setting = refit.setting;
        setting.constants = constants;
        for (const auto& [stage, slope] : slopes_of(refit, parameters, setting)) {
            // Adding a row r to the normal matrix takes C r r' C / (1 + r' C r) from the covariance C.
            const Eigen::VectorXd row = slope / kTimerError;
            const Eigen::VectorXd moved = covariance * row;
            const auto gain = 1.0 + row.dot(moved);
            for (Eigen::Index k = 0; k < count; ++k) {
                const auto narrowing =
                    std::sqrt(std::max(0.0, 1.0 - moved[k] * moved[k] / gain / covariance(k, k)));
                auto& entry = best[static_cast<std::size_t>(k)];
                if (narrowing < entry.narrowing - 1e-9) {
                    entry = {refit.ids.front(),
                             stage,
                             parameters[static_cast<std::size_t>(k)].name,
                             narrowing,
                             std::log2(gain) / 2.0};
                }
            }
        }
    }
    std::erase_if(best, [](const StageWorth& entry) { return entry.narrowing > kLeastNarrowing; });
    std::ranges::sort(best, {}, &StageWorth::narrowing);
    return best;
}

}  // namespace refit
