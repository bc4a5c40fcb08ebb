// SPDX-License-Identifier: Apache-2.0
#include "refit/units.hpp"

#include <limits>
#include <stdexcept>
#include <type_traits>

#include <gtest/gtest.h>

#include "refit/strong_id.hpp"

namespace refit {
namespace {

TEST(Units, OneGibibyteOver450GBpsTakesAbout2Point4Milliseconds) {
    // 2^30 B / 450e9 B/s
    EXPECT_NEAR((1_GiB / 450_GBps).value(), 1073741824.0 / 450e9, 1e-15);
}

TEST(Units, FourHundredGigabitsAreFiftyGigabytes) { EXPECT_EQ(400_Gbitps, 50_GBps); }

TEST(Units, BytesRefuseToWrapAround) {
    const Bytes most{std::numeric_limits<std::uint64_t>::max()};
    EXPECT_THROW(static_cast<void>(most + 1_B), std::overflow_error);
    EXPECT_THROW(static_cast<void>(most * 2), std::overflow_error);
    EXPECT_THROW(static_cast<void>(1_B - 2_B), std::overflow_error);
    EXPECT_EQ((3_B * 4).count(), 12U);
}

TEST(Units, ABandwidthIsPositiveAndFinite) {
    EXPECT_THROW(static_cast<void>(Bandwidth::bytes_per_second(0.0)), std::invalid_argument);
    EXPECT_THROW(static_cast<void>(Bandwidth::bytes_per_second(-1.0)), std::invalid_argument);
    EXPECT_THROW(static_cast<void>(Bandwidth::bytes_per_second(std::numeric_limits<double>::quiet_NaN())),
                 std::invalid_argument);
    EXPECT_THROW(static_cast<void>(Bandwidth::bytes_per_second(std::numeric_limits<double>::infinity())),
                 std::invalid_argument);
}

static_assert(!std::is_convertible_v<double, Seconds>);
static_assert(!std::is_convertible_v<RankId, DomainId>);
static_assert(std::is_trivially_copyable_v<Bytes>);

}  // namespace
}  // namespace refit
