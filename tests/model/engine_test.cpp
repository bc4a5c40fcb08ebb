// SPDX-License-Identifier: Apache-2.0
#include "refit/engine.hpp"

#include <gtest/gtest.h>

namespace refit {
namespace {

TEST(EngineOptions, BeginAsNemoRlDoes) {
    const EngineOptions options;
    EXPECT_EQ(options.streams, 2U);
    EXPECT_EQ(options.buffers, 2U);
    EXPECT_DOUBLE_EQ(options.buffer_memory_ratio, 0.02);
}

TEST(Engine, DiffersByAnyConstant) {
    Engine engine;
    engine.constants.call_cost = {.value = 1e-3,
                                  .low = 1e-3,
                                  .high = 2e-3,
                                  .unit = "ms",
                                  .source = "s",
                                  .kind = "fixed",
                                  .identified_by = {}};
    auto other = engine;
    EXPECT_EQ(other, engine);
    other.constants.call_cost.high = 3e-3;
    EXPECT_NE(other, engine);
}

}  // namespace
}  // namespace refit
