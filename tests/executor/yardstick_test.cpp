// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/yardstick.hpp"

#include <gtest/gtest.h>

namespace refit::exec {
namespace {

TEST(Yardstick, TimesACopyOfNoMoreMemoryThanIsAllowed) {
    const auto yardstick = Yardstick::make(2, Bytes{std::uint64_t{1} << 20U}).value();
    EXPECT_GT(yardstick.measure().value(), Seconds{});
}

}  // namespace
}  // namespace refit::exec
