// SPDX-License-Identifier: Apache-2.0
#include "refit/wrap.hpp"

#include <gtest/gtest.h>

namespace refit {
namespace {

// "two" ends at column 4 + 7 = 11, "three" would at 17.
TEST(Wrap, BreaksBeforeTheWordThatWouldPassTheWidth) {
    EXPECT_EQ(wrap("one two three", 16, 4), "one two\n    three");
    EXPECT_EQ(wrap("one two three", 17, 4), "one two three");
}

TEST(Wrap, LeavesAWordAloneThatIsTooLong) {
    EXPECT_EQ(wrap("a/very/long/path and", 8, 2), "a/very/long/path\n  and");
    EXPECT_EQ(wrap("", 8, 2), "");
}

}  // namespace
}  // namespace refit
