// SPDX-License-Identifier: Apache-2.0
#include "refit/suggest.hpp"

#include <gtest/gtest.h>

namespace refit {
namespace {

using Names = std::vector<std::string>;

TEST(NearestName, HasTheFewestEdits) {
    const Names names{"deepseek_v3", "qwen3_moe", "nemotron_h"};
    EXPECT_EQ(nearest_name("qwen_moe", names), "qwen3_moe");
    EXPECT_EQ(nearest_name("nemotron", names), "nemotron_h");
    EXPECT_EQ(nearest_name("deepseek_v3", names), "deepseek_v3");
}

TEST(NearestName, CountsASwapOfNeighboursOnce) {
    // One swap against two substitutions.
    EXPECT_EQ(nearest_name("ab", Names{"cd", "ba"}), "ba");
}

TEST(NearestName, LeavesLetterCaseApart) {
    EXPECT_EQ(nearest_name("H200", Names{"h100", "h200"}), "h200");
}

TEST(NearestName, IsTheFirstOfEquals) {
    EXPECT_EQ(nearest_name("b", Names{"a", "c"}), "a");
}

TEST(NearestName, IsEmptyWithoutCandidates) {
    EXPECT_EQ(nearest_name("tp", Names{}), "");
}

TEST(NearestName, TakesAnEmptyText) {
    EXPECT_EQ(nearest_name("", Names{"abc", "d"}), "d");
}

TEST(JoinNames, PutsAndBeforeTheLast) {
    EXPECT_EQ(join_names(Names{}), "");
    EXPECT_EQ(join_names(Names{"a"}), "a");
    EXPECT_EQ(join_names(Names{"a", "b"}), "a and b");
    EXPECT_EQ(join_names(Names{"a", "b", "c"}), "a, b and c");
}

}  // namespace
}  // namespace refit
