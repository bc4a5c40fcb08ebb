// SPDX-License-Identifier: Apache-2.0
#include "refit/calibration.hpp"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "refit/timed_refit.hpp"

namespace refit {
namespace {

using C = EngineConstants;

/// A refit of no bytes: fixed_cost + GPUs x fixed_cost_per_gpu is all that it takes.
TimedRefit fixed_refit(
    const std::string& id, std::uint32_t gpus, double low, double high, double weight = 1.0) {
    TimedRefit refit;
    refit.ids = {id};
    refit.setting.gpus = gpus;
    refit.low = Seconds{low};
    refit.high = Seconds{high};
    refit.weight = weight;
    return refit;
}

FitParameter parameter(
    const char* name, Constant C::*member, double prior, double spread, ConstantBounds bounds = {1e-9, 1e9}) {
    return {name, member, {prior, spread, "assumed"}, bounds};
}

/// With fixed_cost alone the logarithm of the prediction is the parameter, so the fit is a weighted mean.
struct MeanOfTwo {
    double seen;   ///< log of what was timed.
    double error;  ///< Its standard deviation.
    double prior;
    double spread;
    [[nodiscard]] double weight() const { return 1.0 / (error * error); }
    [[nodiscard]] double prior_weight() const { return 1.0 / (spread * spread); }
    [[nodiscard]] double value() const {
        return std::exp((seen * weight() + prior * prior_weight()) / (weight() + prior_weight()));
    }
    [[nodiscard]] double deviation() const { return 1.0 / std::sqrt(weight() + prior_weight()); }
};

TEST(Calibration, OfOneConstantIsTheWeightedMeanOfTimeAndPrior) {
    const std::vector refits{fixed_refit("a", 1, 2.0, 2.0)};
    const std::vector parameters{parameter("fixed_cost", &C::fixed_cost, 1.0, std::exp(0.24))};
    const auto fit = fit_constants(refits, weights_of(refits), parameters);
    // A time of 2 s known to 0.12, a prior of 1 s known to 0.24: weights 4 to 1, so the value is 2^(4/5).
    EXPECT_NEAR(fit.values[0], std::pow(2.0, 0.8), 1e-6);
    EXPECT_NEAR(fit.variance(0, 0), 0.12 * 0.12 * 0.24 * 0.24 / (0.12 * 0.12 + 0.24 * 0.24), 1e-9);
    EXPECT_NEAR(fit.share(0, 0), 0.8, 1e-6);  // Of the refit,
    EXPECT_NEAR(fit.share(1, 0), 0.2, 1e-6);  // and of the prior.
    // 0.2 log 2 off the time in units of 0.12, and 0.8 log 2 off the prior in units of 0.24.
    EXPECT_NEAR(
        fit.cost, std::pow(0.2 * std::log(2.0) / 0.12, 2) + std::pow(0.8 * std::log(2.0) / 0.24, 2), 1e-6);
}

TEST(Calibration, CountsARangeAsAUniformOneAroundItsMiddle) {
    const std::vector refits{fixed_refit("a", 1, 1.0, 4.0)};
    const std::vector parameters{parameter("fixed_cost", &C::fixed_cost, 1.0, std::exp(0.5))};
    const auto fit = fit_constants(refits, weights_of(refits), parameters);
    // From 1 to 4: the middle is 2, half the logarithm's range log 2, the variance of a uniform one (log 2)^2
    // / 3.
    const MeanOfTwo mean{
        std::log(2.0), std::sqrt(0.12 * 0.12 + std::log(2.0) * std::log(2.0) / 3.0), 0.0, 0.5};
    EXPECT_NEAR(fit.values[0], mean.value(), 1e-6);
    EXPECT_NEAR(std::sqrt(fit.variance(0, 0)), mean.deviation(), 1e-6);
    EXPECT_NEAR(log_middle(refits[0]), std::log(2.0), 1e-12);
}

TEST(Calibration, CountsAWeightOfAQuarterAsTwiceTheError) {
    const std::vector refits{fixed_refit("a", 1, 2.0, 2.0, 0.25)};
    const std::vector parameters{parameter("fixed_cost", &C::fixed_cost, 1.0, std::exp(0.24))};
    const MeanOfTwo mean{std::log(2.0), 0.24, 0.0, 0.24};
    EXPECT_NEAR(fit_constants(refits, weights_of(refits), parameters).values[0], mean.value(), 1e-6);
    // Left out, it says nothing: the prior stays.
    EXPECT_NEAR(fit_constants(refits, std::vector{0.0}, parameters).values[0], 1.0, 1e-6);
}

TEST(Calibration, StopsAtABound) {
    const std::vector refits{fixed_refit("a", 1, 2.0, 2.0)};
    const std::vector parameters{parameter("fixed_cost", &C::fixed_cost, 1.0, 1.5, {0.5, 1.25})};
    const auto fit = fit_constants(refits, weights_of(refits), parameters);
    EXPECT_NEAR(fit.values[0], 1.25, 1e-9);
    const auto interval = profile_interval(refits, parameters, fit, 0);
    EXPECT_TRUE(interval.is_high_bound);
    EXPECT_NEAR(interval.high, 1.25, 1e-9);
    EXPECT_LT(interval.low, 1.25);
}

TEST(Calibration, FindsTheConstantsThatMadeTheTimes) {
    // 0.2 s and 1 ms a GPU: 0.3 s on 100, 1.2 s on 1000, 8.2 s on 8000. The priors are wide and wrong.
    const std::vector refits{
        fixed_refit("a", 100, 0.3, 0.3), fixed_refit("b", 1000, 1.2, 1.2), fixed_refit("c", 8000, 8.2, 8.2)};
    const std::vector parameters{parameter("fixed_cost", &C::fixed_cost, 1.0, 1e4),
                                 parameter("fixed_cost_per_gpu", &C::fixed_cost_per_gpu, 1e-4, 1e4)};
    const auto fit = fit_constants(refits, weights_of(refits), parameters);
    EXPECT_NEAR(fit.values[0], 0.2, 2e-4);
    EXPECT_NEAR(fit.values[1], 1e-3, 1e-6);
    EXPECT_LT(fit.variance(0, 1), 0.0);  // More of one is less of the other.
    EXPECT_EQ(fit.values, fit_constants(refits, weights_of(refits), parameters).values);
}

TEST(Calibration, SharesOfWhatIsKnownSumToOne) {
    const std::vector refits{fixed_refit("a", 100, 0.3, 0.4), fixed_refit("b", 1000, 1.3, 1.3, 0.25)};
    const std::vector parameters{parameter("fixed_cost", &C::fixed_cost, 0.3, 2.0),
                                 parameter("fixed_cost_per_gpu", &C::fixed_cost_per_gpu, 1e-3, 1.5)};
    const auto fit = fit_constants(refits, weights_of(refits), parameters);
    for (std::size_t k = 0; k < 2; ++k) {
        double sum = 0.0;
        for (std::size_t row = 0; row < 4; ++row) {
            EXPECT_GE(fit.share(row, k), 0.0);
            sum += fit.share(row, k);
        }
        EXPECT_NEAR(sum, 1.0, 1e-9);
    }
}

TEST(Calibration, AProfileIsOneDeviationWhereTheModelIsLinear) {
    const std::vector refits{fixed_refit("a", 1, 2.0, 2.0)};
    const std::vector parameters{parameter("fixed_cost", &C::fixed_cost, 1.0, std::exp(0.24))};
    const auto fit = fit_constants(refits, weights_of(refits), parameters);
    const auto interval = profile_interval(refits, parameters, fit, 0);
    const MeanOfTwo mean{std::log(2.0), 0.12, 0.0, 0.24};
    EXPECT_NEAR(interval.low, mean.value() * std::exp(-mean.deviation()), 1e-3);
    EXPECT_NEAR(interval.high, mean.value() * std::exp(mean.deviation()), 1e-3);
    EXPECT_FALSE(interval.is_low_bound);
}

TEST(Calibration, DrawsAgainFromTheRefitsWithASeed) {
    const std::vector refits{fixed_refit("a", 1, 1.0, 1.0), fixed_refit("b", 1, 1.5, 1.5)};
    const std::vector parameters{parameter("fixed_cost", &C::fixed_cost, 1.0, 1e6)};
    const auto draws = bootstrap(refits, parameters, 40);
    EXPECT_EQ(draws, bootstrap(refits, parameters, 40));
    // Twice a, twice b, or one of each: 1 s, 1.5 s or their geometric middle.
    std::vector<int> seen(3, 0);
    for (const auto& draw : draws) {
        const auto times = std::log(draw[0]) / std::log(1.5) * 2.0;
        ASSERT_NEAR(times, std::round(times), 1e-3);
        ++seen[static_cast<std::size_t>(std::lround(times))];
    }
    EXPECT_GT(seen[0], 0);
    EXPECT_GT(seen[1], seen[0] / 2);
    EXPECT_GT(seen[2], 0);
    EXPECT_EQ(seen[0] + seen[1] + seen[2], 40);
}

TEST(Calibration, TakesTheConstantsThatHaveAPriorAndAReading) {
    C constants;
    constants.fixed_cost = {1.0, 1.0, 1.0, "s", "s", "fitted", {}, ConstantPrior{1.0, 2.0, "s"}, {}};
    constants.nic_sharing = {1.0, 1.0, 1.0, "1", "s", "fixed", {}, ConstantPrior{1.0, 2.0, "s"}, {}};
    constants.call_cost = {1.0, 1.0, 1.0, "s", "s", "fitted", {}, {}, {}};
    constants.finalize_per_expert = constants.fixed_cost;
    constants.finalize_per_local_byte = constants.fixed_cost;
    constants.finalize_per_local_byte.kind = "alternative";
    const auto names = [](const std::vector<FitParameter>& parameters) {
        std::vector<std::string> list;
        for (const auto& one : parameters) {
            list.push_back(one.name);
        }
        return list;
    };
    EXPECT_EQ(names(fit_parameters(constants)),
              (std::vector<std::string>{"fixed_cost", "finalize_per_expert"}));
    EXPECT_EQ(names(fit_parameters(constants, {FinalizeReading::kPerLocalByte})),
              (std::vector<std::string>{"fixed_cost", "finalize_per_local_byte"}));
}

TEST(Calibration, AConstantThatOneConfigurationTellsKeepsItsPriorsInterval) {
    // Two times of one configuration, then of two. Each is known to 0.12, the prior to log 3.
    std::vector refits{fixed_refit("a", 1, 2.0, 2.0), fixed_refit("b", 1, 2.0, 2.0)};
    const std::vector parameters{parameter("fixed_cost", &C::fixed_cost, 1.0, 3.0)};
    refits[0].layouts = refits[1].layouts = "TP4 -> TP8";
    const auto fit_now = [&] { return fit_constants(refits, weights_of(refits), parameters); };
    EXPECT_NEAR(fit_now().spreads[0], std::log(3.0), 1e-9);
    // Without either of two, the other and the prior are left.
    const auto left = 1.0 / std::sqrt(1.0 / (0.12 * 0.12) + 1.0 / std::pow(std::log(3.0), 2));
    refits[1].gpu = "GB200";
    EXPECT_NEAR(fit_now().spreads[0], left, 1e-9);
    refits[1].gpu = "";
    refits[1].model = "another";
    EXPECT_NEAR(fit_now().spreads[0], left, 1e-9);
    refits[1].model = "";
    refits[1].layouts = "TP8 -> TP8";
    EXPECT_NEAR(fit_now().spreads[0], left, 1e-9);
    // Layouts that nobody named are other than those of any other refit.
    refits[0].layouts = refits[1].layouts = "";
    const auto fit = fit_now();
    EXPECT_NEAR(fit.spreads[0], left, 1e-9);
    const auto constants = constants_with({}, parameters, fit);
    EXPECT_NEAR(constants.fixed_cost.high, fit.values[0] * std::exp(left), 1e-9);
    EXPECT_NEAR(constants.fixed_cost.low, fit.values[0] / std::exp(left), 1e-9);
}

TEST(Calibration, TheRowErrorIsWhatTheMissesShow) {
    // Two refits of 1 s and two of 1.44 s, whose middle, 1.2 s, a wide prior lets the fit take: each misses by
    // log 1.2 = 0.18232. Four refits less one that tells the constant leave three free, and 12 % counts as four more:
    // 4 (0.18232 / e)^2 + 4 (0.12 / e)^2 = 3 + 4, so e = sqrt(4 (0.033241 + 0.0144) / 7) = 0.16499.
    const std::vector refits{fixed_refit("a", 1, 1.0, 1.0),
                             fixed_refit("b", 1, 1.44, 1.44),
                             fixed_refit("c", 1, 1.0, 1.0),
                             fixed_refit("d", 1, 1.44, 1.44)};
    const std::vector parameters{parameter("fixed_cost", &C::fixed_cost, 1.0, 1e6)};
    EXPECT_NEAR(estimated_row_error(refits, weights_of(refits), parameters), 0.16499, 2e-4);
    // Worth nothing, the 12 % leave 4 (0.18232 / e)^2 = 3: e = 0.21052.
    FitOptions options;
    options.row_error_worth = 0.0;
    EXPECT_NEAR(estimated_row_error(refits, weights_of(refits), parameters, options), 0.21052, 2e-4);
}

TEST(Calibration, PublishedRangesExplainMissesBeforeTheRowErrorDoes) {
    // Two refits from 0.5 to 2 s: middles of 1 s, that nothing misses. 4 (0.12 / e)^2 = 1 + 4: e = 0.10733.
    const std::vector refits{fixed_refit("a", 1, 0.5, 2.0), fixed_refit("b", 1, 0.5, 2.0)};
    const std::vector parameters{parameter("fixed_cost", &C::fixed_cost, 1.0, 1e6)};
    EXPECT_NEAR(estimated_row_error(refits, weights_of(refits), parameters), 0.10733, 2e-4);
    // Of 0.4 to 1.6 s and 0.625 to 2.5 s each middle, 0.8 and 1.25 s, is missed by log 1.25, squared 0.04979, less than
    // the variance of a uniform range, (log 2)^2 / 3 = 0.16015: 2 x 0.04979 / (e^2 + 0.16015) + 4 x 0.0144 / e^2 = 5
    // at e^2 = 0.013017, where the terms are 0.5751 and 4.4249.
    const std::vector apart{fixed_refit("a", 1, 0.4, 1.6), fixed_refit("b", 1, 0.625, 2.5)};
    EXPECT_NEAR(estimated_row_error(apart, weights_of(apart), parameters), std::sqrt(0.013017), 2e-4);
}

TEST(Calibration, RefusesWeightsThatDoNotMatch) {
    const std::vector refits{fixed_refit("a", 1, 2.0, 2.0)};
    const std::vector parameters{parameter("fixed_cost", &C::fixed_cost, 1.0, 3.0)};
    EXPECT_THROW(static_cast<void>(fit_constants(refits, std::vector<double>{}, parameters)),
                 std::logic_error);
    EXPECT_THROW(static_cast<void>(fit_constants(refits, weights_of(refits), {})), std::logic_error);
}

}  // namespace
}  // namespace refit
