// SPDX-License-Identifier: Apache-2.0
#include "refit/engine_options.hpp"

#include <gtest/gtest.h>

namespace refit {
namespace {

TEST(EngineOptions, BeginAsNemoRlDoes) {
    const EngineOptions options;
    EXPECT_EQ(options.streams, 2U);
    EXPECT_EQ(options.buffers, 2U);
    EXPECT_DOUBLE_EQ(options.buffer_memory_ratio, 0.02);
}

TEST(EngineOptions, AreTheSameVariantWhateverTheSizes) {
    EngineOptions sized;
    sized.streams = 5;
    sized.buffers = 1;
    sized.buffer_memory_ratio = 0.1;
    sized.has_shadow_copy = true;
    EXPECT_TRUE(sized.is_same_variant(EngineOptions{}));
    sized.broadcast_group = BroadcastGroup::kPairs;
    EXPECT_FALSE(sized.is_same_variant(EngineOptions{}));
}

TEST(EngineOptions, HaveTheNamesOfTheirValues) {
    EXPECT_EQ(name_of(BroadcastRoot::kEachStage), "each-pp-stage");
    EXPECT_EQ(name_of(BroadcastGroup::kRootDomain), "root-domain");
    EXPECT_EQ(name_of(BroadcastGroup::kPairs), "pairs");
    EXPECT_EQ(name_of(TransferOrder::kRounds), "rounds");
    EXPECT_EQ(name_of(PackOverlap::kSerial), "serial");
    EXPECT_EQ(name_of(DirectSource::kGathered), "gathered");
    EXPECT_EQ(name_of(DirectLoading::kLocal), "local");
}

}  // namespace
}  // namespace refit
