// SPDX-License-Identifier: Apache-2.0
#include "refit/published.hpp"

#include <gtest/gtest.h>

namespace refit {
namespace {

TEST(PublishedRecord, MayGiveARangeWithoutAValue) {
    const PublishedRecord record{
        "id", "title", "nemo-rl-reshard", std::nullopt, Seconds{0.74}, Seconds{1.0}, {}, {}};
    EXPECT_FALSE(record.seconds.has_value());
    EXPECT_LT(*record.low, *record.high);
    auto other = record;
    EXPECT_EQ(other, record);
    other.inferred.emplace_back("train_gpus");
    EXPECT_NE(other, record);
}

}  // namespace
}  // namespace refit
