// SPDX-License-Identifier: Apache-2.0
#include "refit/vocabulary.hpp"

#include <gtest/gtest.h>

namespace refit {
namespace {

TEST(Vocabulary, IsPaddedToTheNextMultiple) {
    EXPECT_EQ(padded_rows(96, 128), 128U);
    EXPECT_EQ(padded_rows(128, 128), 128U);
    EXPECT_EQ(padded_rows(129, 64), 192U);
}

TEST(Vocabulary, OfTrainersIsAMultipleOfTheBridgesDivisorTimesTp) {
    // 151,936 = 128 · 1187.
    EXPECT_EQ(trainer_vocabulary_multiple(151'936, 8), 1024U);
    // 96 = 32 · 3: at TP4 padded to 128, at TP1 not at all.
    EXPECT_EQ(trainer_vocabulary_multiple(96, 4), 128U);
    EXPECT_EQ(padded_rows(96, trainer_vocabulary_multiple(96, 1)), 96U);
    // 50,257 is odd: each rank rounds up by itself.
    EXPECT_EQ(trainer_vocabulary_multiple(50'257, 2), 2U);
}

}  // namespace
}  // namespace refit
