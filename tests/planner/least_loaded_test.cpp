// SPDX-License-Identifier: Apache-2.0
#include "optimal/least_loaded.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace refit {
namespace {

TEST(LeastLoaded, IsTheFirstOfTheLeastWhateverGrows) {
    // The same answers as a look at all of them, over a thousand questions between which some loads grow.
    std::mt19937 random{1};
    std::vector<double> loads(40, 0.0);
    LeastLoaded least;
    const auto load = [&](std::uint32_t candidate) { return loads[candidate]; };
    for (std::size_t count = 1; count <= 1000; ++count) {
        const auto known = std::min<std::size_t>(count, loads.size());
        least.grow(known, load);
        const auto expected =
            std::min_element(loads.begin(), loads.begin() + static_cast<std::ptrdiff_t>(known));
        EXPECT_EQ(least.least(load), static_cast<std::uint32_t>(expected - loads.begin())) << count;
        // Whole numbers, so that many are equal.
        loads[random() % known] += static_cast<double>(random() % 3);
        loads[least.least(load)] += 1.0;
    }
}

}  // namespace
}  // namespace refit
