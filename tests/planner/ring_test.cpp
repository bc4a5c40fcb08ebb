// SPDX-License-Identifier: Apache-2.0
#include "refit/ring.hpp"

#include <gtest/gtest.h>

#include "../shipped.hpp"

namespace refit {
namespace {

TEST(SplitByDomain, KeepsTheRootsDomainFirstAndMeetsEachDomainOnce) {
    // Trainers 0-255 on nodes of 8. A group that leaves node 1 and comes back to it.
    const auto scenario = shipped_scenario("deepseek-v3-h100");
    const auto domains = split_by_domain(scenario.cluster, {RankId{9}, RankId{17}, RankId{10}, RankId{2}});
    ASSERT_EQ(domains.size(), 3U);
    EXPECT_EQ(domains[0], (std::vector{RankId{9}, RankId{10}}));
    EXPECT_EQ(domains[1], (std::vector{RankId{17}}));
    EXPECT_EQ(domains[2], (std::vector{RankId{2}}));
    EXPECT_EQ(fewest_members(domains), 1U);
}

}  // namespace
}  // namespace refit
