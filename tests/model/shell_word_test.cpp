// SPDX-License-Identifier: Apache-2.0
#include "refit/shell_word.hpp"

#include <gtest/gtest.h>

namespace refit {
namespace {

TEST(ShellWord, IsQuotedWhereAShellWouldReadItOtherwise) {
    EXPECT_EQ(shell_word("tp4.dp2@32"), "tp4.dp2@32");
    EXPECT_EQ(shell_word("engine.nic=400Gbit/s,+50%"), "engine.nic=400Gbit/s,+50%");
    EXPECT_EQ(shell_word(""), "''");
    EXPECT_EQ(shell_word("my plan.json"), "'my plan.json'");
    EXPECT_EQ(shell_word("$HOME"), "'$HOME'");
    EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
    EXPECT_EQ(shell_word("\xc3\xa9"), "'\xc3\xa9'");
}

}  // namespace
}  // namespace refit
