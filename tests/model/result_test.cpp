// SPDX-License-Identifier: Apache-2.0
#include "refit/result.hpp"

#include <string>

#include <gtest/gtest.h>

namespace refit {
namespace {

TEST(Result, OfAFailureHoldsTheFault) {
    const Result<int> result = fail(ErrorCode::kIo, "unreadable", "cannot be opened", "file.json");
    ASSERT_FALSE(result.has_value());
    ASSERT_EQ(result.error().size(), 1U);
    EXPECT_EQ(result.error()[0].rule, "unreadable");
    EXPECT_EQ(result.error()[0].where, "file.json");
    EXPECT_FALSE(result.error()[0].nearest.has_value());
}

TEST(Take, MovesTheValueOut) {
    Faults faults;
    EXPECT_EQ(take(Result<std::string>{"value"}, faults), "value");
    EXPECT_TRUE(faults.empty());
}

TEST(Take, AppendsFaultsToThoseThereAre) {
    Faults faults{{ErrorCode::kUsage, "first", "one", ""}};
    EXPECT_FALSE(take(Result<int>{fail(ErrorCode::kIo, "second", "two")}, faults).has_value());
    ASSERT_EQ(faults.size(), 2U);
    EXPECT_EQ(faults[1].rule, "second");
}

}  // namespace
}  // namespace refit
