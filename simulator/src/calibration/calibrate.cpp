// SPDX-License-Identifier: Apache-2.0
#include "refit/calibrate.hpp"

#include <algorithm>
#include <cmath>

#include "refit/constant_table.hpp"
#include "refit/validate.hpp"
#include "stage_worth.hpp"

namespace refit {
namespace {

/// Three digits of the value in its unit, of which `factor` is one.
double rounded(double value, double factor) {
    const auto in_unit = value / factor;
    const auto digits = std::pow(10.0, 2.0 - std::floor(std::log10(in_unit)));
    return std::round(in_unit * digits) / digits * factor;
}

class Calibrator {
public:
    Calibrator(std::span<const TimedRefit> refits,
               const EngineConstants& constants,
               const CalibrateOptions& options)
        : refits_{refits}, options_{options}, given_{options.fit}, weights_{weights_of(refits)} {
        result_.constants = constants;
    }

    Calibration run() {
        const auto parameters = fit_parameters(result_.constants, options_.fit.reading);
        options_.fit.row_error = estimated_row_error(refits_, weights_, parameters, options_.fit);
        result_.row_error = options_.fit.row_error;
        const auto fit = fit_constants(refits_, weights_, parameters, options_.fit);
        result_.constants.correlations =
            constants_with(result_.constants, parameters, fit).correlations;
        describe(parameters, fit);
        for (const auto& reading : readings_with_constants()) {
            set_alternative(reading);
        }
        result_.worth_timing = stages_worth_timing(refits_, parameters, fit, result_.constants);
        round_correlations();
        add_left_out();
        return std::move(result_);
    }

private:
    void describe(const std::vector<FitParameter>& parameters, const Fit& fit) {
        for (std::size_t k = 0; k < parameters.size(); ++k) {
            double told = 0.0;
            for (std::size_t row = 0; row < refits_.size(); ++row) {
                told += fit.share(row, k);
            }
            auto& constant = result_.constants.*parameters[k].member;
            constant.kind = told >= 0.5 ? "fitted" : "prior";
            set(parameters, fit, k, options_.fit);
            result_.fitted.push_back(parameters[k].name);
            result_.from_refits.push_back(told);
        }
        for (const auto& pair : result_.constants.correlations) {
            if (std::abs(pair.value) >= 0.5) {
                result_.alike.push_back({name_of(pair.first), name_of(pair.second), pair.value});
            }
        }
        std::ranges::sort(result_.alike, [](const LikePair& a, const LikePair& b) {
            return std::abs(a.correlation) > std::abs(b.correlation);
        });
    }

    void set(const std::vector<FitParameter>& parameters,
             const Fit& fit,
             std::size_t k,
             const FitOptions& options) {
        const auto& parameter = parameters[k];
        const auto interval = profile_interval(refits_, parameters, fit, k, options);
        auto& constant = result_.constants.*parameter.member;
        constant.identified_by.clear();
        double most = 0.0;
        for (std::size_t row = 0; row < refits_.size(); ++row) {
            most = std::max(most, fit.share(row, k));
        }
        for (std::size_t row = 0; row < refits_.size(); ++row) {
            if (fit.share(row, k) >= std::min(kIdentifyingShare, most)) {
                constant.identified_by.insert(
                    constant.identified_by.end(), refits_[row].ids.begin(), refits_[row].ids.end());
            }
        }
        std::ranges::sort(constant.identified_by);
        const auto spread = std::exp(fit.spreads[k]);
        const auto low = std::max(std::min(interval.low, fit.values[k] / spread), parameter.bounds.low);
        const auto high = std::min(std::max(interval.high, fit.values[k] * spread), parameter.bounds.high);
        const auto factor = unit_factor(constant.unit);
        constant.value = rounded(fit.values[k], factor);
        constant.low = std::min(rounded(low, factor), constant.value);
        constant.high = std::max(rounded(high, factor), constant.value);
        constant.source = options_.source + "; prior: " + parameter.prior.source;
    }

    void set_alternative(const Reading& reading) {
        auto options = options_.fit;
        options.reading = reading;
        const auto parameters = fit_parameters(result_.constants, options.reading);
        const auto fit = fit_constants(refits_, weights_, parameters, options);
        for (std::size_t k = 0; k < parameters.size(); ++k) {
            if ((result_.constants.*parameters[k].member).kind == "alternative") {
                set(parameters, fit, k, options);
            }
        }
    }

    void round_correlations() {
        auto& all = result_.constants.correlations;
        for (auto& pair : all) {
            pair.value = std::round(pair.value * 100.0) / 100.0;
        }
        std::erase_if(all, [](const ConstantCorrelation& pair) { return std::abs(pair.value) < 0.05; });
    }

    void add_left_out() {
        auto without = refitted_without_each(refits_, result_.constants, given_);
        if (options_.sets_model_error) {
            auto& error = result_.constants.model_error;
            error.value = error.low = error.high = model_error_of(refits_, without, result_.row_error);
            error.source = options_.source +
                           (error.value >= result_.row_error
                                ? ": what they are off by, 12 % counting as four of them"
                                : ": the largest step of 0.005 with which the 80 % ranges of refits left out "
                                  "hold at most 90 % of them");
            for (auto& constants : without) {
                constants.model_error = error;
            }
        }
        const auto left_out = leave_each_out(refits_, without);
        for (std::size_t i = 0; i < refits_.size(); ++i) {
            const auto now = predict_with(refits_, i, result_.constants);
            result_.refits.push_back({refits_[i].ids, now.seconds, now.error, left_out[i]});
        }
    }

    static std::string name_of(Constant EngineConstants::*member) {
        const auto table = constant_table();
        return std::ranges::find(table, member, &NamedConstant::member)->name;
    }

    std::span<const TimedRefit> refits_;
    CalibrateOptions options_;
    FitOptions given_;  ///< Before the row error was estimated.
    std::vector<double> weights_;
    Calibration result_;
};

}  // namespace

Calibration calibrate(std::span<const TimedRefit> refits,
                      const EngineConstants& constants,
                      const CalibrateOptions& options) {
    return Calibrator{refits, constants, options}.run();
}

}  // namespace refit
