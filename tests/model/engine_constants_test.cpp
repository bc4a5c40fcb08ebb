// SPDX-License-Identifier: Apache-2.0
#include "refit/engine_constants.hpp"

#include <gtest/gtest.h>

namespace refit {
namespace {

TEST(EngineConstants, DifferByAnyConstant) {
    EngineConstants constants;
    constants.call_cost = {.value = 1e-3,
                           .low = 1e-3,
                           .high = 2e-3,
                           .unit = "ms",
                           .source = "s",
                           .kind = "fixed",
                           .identified_by = {}};
    auto other = constants;
    EXPECT_EQ(other, constants);
    other.call_cost.high = 3e-3;
    EXPECT_NE(other, constants);
}

}  // namespace
}  // namespace refit
