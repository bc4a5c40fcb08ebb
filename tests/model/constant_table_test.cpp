// SPDX-License-Identifier: Apache-2.0
#include "refit/constant_table.hpp"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace refit {
namespace {

TEST(ConstantTable, NamesEveryConstantOnce) {
    // A value written through one entry must not show through another, and together they are all of the
    // constants.
    EngineConstants constants;
    std::set<std::string> names;
    double value = 1.0;
    for (const auto& entry : constant_table()) {
        (constants.*entry.member).value = value++;
        EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    }
    value = 1.0;
    for (const auto& entry : constant_table()) {
        EXPECT_EQ((constants.*entry.member).value, value++) << entry.name;
    }
    // Beside the constants there are only their correlations.
    EXPECT_EQ(sizeof(EngineConstants), names.size() * sizeof(Constant) + sizeof(constants.correlations));
}

TEST(ConstantTable, KnowsTheUnitsOfFiles) {
    EXPECT_EQ(unit_factor("ms"), 1e-3);
    EXPECT_EQ(unit_factor("us"), 1e-6);
    EXPECT_EQ(unit_factor("ms/GB"), 1e-12);  // 1e-3 s a 1e9 B.
    EXPECT_EQ(unit_factor("1"), 1.0);
    EXPECT_EQ(constant_units().size(), 6U);
}

TEST(ConstantTable, FindsByName) {
    ASSERT_NE(find_constant("call_cost"), nullptr);
    EXPECT_EQ(find_constant("call_cost")->member, &EngineConstants::call_cost);
    EXPECT_EQ(std::string{find_constant("finalize_per_local_byte")->unit}, "s/B");
    EXPECT_TRUE(find_constant("nic_efficiency")->is_share);
    EXPECT_EQ(find_constant("cal_cost"), nullptr);
}

}  // namespace
}  // namespace refit
