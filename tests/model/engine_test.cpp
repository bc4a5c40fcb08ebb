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

TEST(Engine, FindsThePathThatItsOptionsMean) {
    Engine engine;
    EngineOptions gathered;
    gathered.direct_source = DirectSource::kGathered;
    engine.paths = {{.name = "a-broadcast", .method = "gather-broadcast", .is_calibrated = true, .settings = {}, .options = {}},
                    {.name = "a-pull", .method = "direct", .is_calibrated = true, .settings = {}, .options = gathered}};
    EXPECT_EQ(engine.path_of("gather-broadcast")->name, "a-broadcast");
    EXPECT_EQ(engine.path_of("direct"), nullptr);
    EXPECT_EQ(engine.find_path("a-pull")->method, "direct");
    EXPECT_EQ(engine.find_path("direct"), nullptr);
    engine.options = gathered;
    engine.options.streams = 5;  // sizes are no other way
    EXPECT_EQ(engine.path_of("direct")->name, "a-pull");
    EXPECT_EQ(engine.path_of("gather-broadcast"), nullptr);
}

}  // namespace
}  // namespace refit
