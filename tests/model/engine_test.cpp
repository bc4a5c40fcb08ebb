// SPDX-License-Identifier: Apache-2.0
#include "refit/engine.hpp"

#include <gtest/gtest.h>

namespace refit {
namespace {

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
