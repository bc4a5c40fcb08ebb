// SPDX-License-Identifier: Apache-2.0
#include "refit/left_out.hpp"

#include <algorithm>
#include <cmath>

#include "refit/validate.hpp"

namespace refit {
namespace {

std::vector<double> without(std::span<const TimedRefit> refits, std::span<const std::size_t> block) {
    auto weights = weights_of(refits);
    for (const auto refit : block) {
        weights.at(refit) = 0.0;
    }
    return weights;
}

}  // namespace

EngineConstants refitted(std::span<const TimedRefit> refits,
                         std::span<const double> weights,
                         const EngineConstants& constants,
                         const FitOptions& options) {
    const auto parameters = fit_parameters(constants, options.reading);
    auto estimated = options;
    estimated.row_error = estimated_row_error(refits, weights, parameters, options);
    auto result =
        constants_with(constants, parameters, fit_constants(refits, weights, parameters, estimated));
    for (const auto& reading : readings_with_constants()) {
        auto other = estimated;
        other.reading = reading;
        const auto its = fit_parameters(constants, other.reading);
        const auto fit = fit_constants(refits, weights, its, other);
        for (std::size_t k = 0; k < its.size(); ++k) {
            auto& constant = result.*its[k].member;
            if (constant.kind == "alternative") {
                constant.value = fit.values[k];
            }
        }
    }
    return result;
}

LeftOut predict_with(std::span<const TimedRefit> refits,
                     std::size_t refit,
                     const EngineConstants& constants) {
    const auto& timed = refits[refit];
    auto setting = timed.setting;
    setting.constants = constants;
    const auto seconds = estimate_total(timed.loads, setting);
    const auto range = estimate_range(timed.loads, setting, true);
    return {refit, seconds, range.low, range.high, error_beside(seconds, timed.low, timed.high)};
}

std::vector<EngineConstants> refitted_without_each(std::span<const TimedRefit> refits,
                                                   const EngineConstants& constants,
                                                   const FitOptions& options) {
    // Fewer starts than for constants that ship: from the priors' middle the same minimum is found.
    auto fewer = options;
    fewer.starts = std::min(options.starts, 2U);
    fewer.finest_step = std::max(options.finest_step, 1e-4);
    std::vector<EngineConstants> all;
    for (std::size_t i = 0; i < refits.size(); ++i) {
        all.push_back(refitted(refits, without(refits, std::span{&i, 1}), constants, fewer));
    }
    return all;
}

std::vector<LeftOut> leave_each_out(std::span<const TimedRefit> refits,
                                    std::span<const EngineConstants> without) {
    std::vector<LeftOut> all;
    for (std::size_t i = 0; i < refits.size(); ++i) {
        all.push_back(predict_with(refits, i, without[i]));
    }
    return all;
}

std::vector<LeftOut> leave_block_out(std::span<const TimedRefit> refits,
                                     std::span<const std::size_t> block,
                                     const EngineConstants& constants,
                                     const FitOptions& options) {
    const auto fitted = refitted(refits, without(refits, block), constants, options);
    std::vector<LeftOut> all;
    for (const auto refit : block) {
        all.push_back(predict_with(refits, refit, fitted));
    }
    return all;
}

bool is_covered(const TimedRefit& refit, const LeftOut& prediction) {
    return prediction.low <= refit.high && refit.low <= prediction.high;
}

double model_error_of(std::span<const TimedRefit> refits,
                      std::vector<EngineConstants> without,
                      double row_error) {
    constexpr double kStep = 0.005;
    constexpr double kMost = 0.9;
    const auto most = std::max(1, static_cast<int>(std::ceil(row_error / kStep)));
    if (refits.size() < kFewestForCoverage) {
        return kStep * most;
    }
    const auto coverage = [&](double error) {
        double covered = 0.0;
        double weight = 0.0;
        for (std::size_t i = 0; i < refits.size(); ++i) {
            without[i].model_error.value = error;
            const auto prediction = predict_with(refits, i, without[i]);
            const auto middle = std::exp(log_middle(refits[i]));
            const bool holds = prediction.low.value() <= middle && middle <= prediction.high.value();
            covered += holds ? refits[i].weight : 0.0;
            weight += refits[i].weight;
        }
        return covered / weight;
    };
    int step = 1;
    while (step < most && coverage(kStep * (step + 1)) <= kMost) {
        ++step;
    }
    return kStep * step;
}

}  // namespace refit
