// SPDX-License-Identifier: Apache-2.0
#include "refit/left_out.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace refit {
namespace {

/// Refits of which fixed_cost is all: a fit to some of them is the geometric mean of their times where the prior is wide.
std::vector<TimedRefit> refits_of(const std::vector<double>& times) {
    std::vector<TimedRefit> refits;
    for (const auto time : times) {
        TimedRefit refit;
        refit.ids = {std::to_string(refits.size())};
        refit.low = refit.high = Seconds{time};
        refits.push_back(refit);
    }
    return refits;
}

EngineConstants constants() {
    EngineConstants result;
    result.fixed_cost = {1.0, 1.0, 1.0, "s", "s", "fitted", {}, ConstantPrior{1.0, 1e30, "wide"}, ConstantBounds{1e-6, 1e6}};
    return result;
}

TEST(LeftOut, IsPredictedByTheOthers) {
    const auto refits = refits_of({1.0, 2.0, 8.0});
    const auto left_out = leave_each_out(refits, refitted_without_each(refits, constants()));
    ASSERT_EQ(left_out.size(), 3U);
    EXPECT_NEAR(left_out[0].seconds.value(), 4.0, 1e-3);  // sqrt(2 x 8).
    EXPECT_NEAR(left_out[1].seconds.value(), std::sqrt(8.0), 1e-3);
    EXPECT_NEAR(left_out[2].seconds.value(), std::sqrt(2.0), 1e-3);
    EXPECT_NEAR(left_out[0].error, 3.0, 1e-3);
    // 2 s and 8 s miss their middle by log 2 each: 2 (log 2 / e)^2 + 4 (0.12 / e)^2 = 2 - 1 + 4, e = 0.45133. Without
    // one of the two, the other knows the constant to e.
    const auto reach = 1.2816 * std::sqrt((2.0 * std::log(2.0) * std::log(2.0) + 4.0 * 0.12 * 0.12) / 5.0);
    EXPECT_NEAR(std::log(left_out[0].high / left_out[0].seconds), reach, 1e-3);
    EXPECT_NEAR(std::log(left_out[0].seconds / left_out[0].low), reach, 1e-3);
}

TEST(LeftOut, OfABlockIsPredictedByWhatIsNotInIt) {
    const auto refits = refits_of({1.0, 2.0, 8.0});
    const auto left_out = leave_block_out(refits, std::vector<std::size_t>{0, 2}, constants());
    ASSERT_EQ(left_out.size(), 2U);
    EXPECT_NEAR(left_out[0].seconds.value(), 2.0, 1e-3);
    EXPECT_EQ(left_out[1].refit, 2U);
    EXPECT_NEAR(left_out[1].error, -0.75, 1e-3);
}

TEST(LeftOut, IsCoveredWhereTheRangesMeet) {
    auto refits = refits_of({2.0});
    refits[0].high = Seconds{3.0};
    const auto covered = [&](double low, double high) {
        return is_covered(refits[0], {0, Seconds{low}, Seconds{low}, Seconds{high}, 0.0});
    };
    EXPECT_TRUE(covered(1.0, 2.0));
    EXPECT_TRUE(covered(2.5, 2.6));
    EXPECT_TRUE(covered(3.0, 4.0));
    EXPECT_FALSE(covered(1.0, 1.9));
    EXPECT_FALSE(covered(3.1, 4.0));
}

TEST(LeftOut, TheModelErrorLetsOneInTenFallOut) {
    // Nineteen refits of 1 s and one of 2 s. No error lets the range of the one, around 1 s, reach 2 s, and 95 % are held
    // by any, above 90 %: the least.
    auto times = std::vector<double>(19, 1.0);
    times.push_back(2.0);
    const auto one = refits_of(times);
    EXPECT_DOUBLE_EQ(model_error_of(one, refitted_without_each(one, constants()), 0.3), 0.005);
    // Nine of 1 s and one of 1.3 s. Without the one the rest say 1 s and miss nothing: 4 (0.12 / e)^2 = 9 - 1 + 4, and
    // eight of them know the constant to e^2 / 8 = 0.0006. It falls out while 1.2816 sqrt(0.0006 + m^2) < log 1.3, so
    // up to m = 0.2032, of which 0.2 is the largest multiple. That is 9 of 10.
    times = std::vector<double>(9, 1.0);
    times.push_back(1.3);
    const auto ten = refits_of(times);
    const auto without = refitted_without_each(ten, constants());
    EXPECT_NEAR(model_error_of(ten, without, 0.5), 0.2, 1e-12);
    // But no more than what refits are off by, rounded up.
    EXPECT_NEAR(model_error_of(ten, without, 0.097), 0.1, 1e-12);
}

TEST(LeftOut, TheModelErrorOfAFewRefitsIsTheirRowError) {
    const auto few = refits_of({1.0, 1.0, 1.0});
    const auto without = refitted_without_each(few, constants());
    EXPECT_NEAR(model_error_of(few, without, 0.101), 0.105, 1e-12);
    EXPECT_NEAR(model_error_of(few, without, 0.002), 0.005, 1e-12);
}

}  // namespace
}  // namespace refit
