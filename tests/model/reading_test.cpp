// SPDX-License-Identifier: Apache-2.0
#include "refit/reading.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace refit {
namespace {

TEST(ReadingChoice, LeavesOpenWhatIsNotChosen) {
    // Three ways to finalise; rings on one NIC go with three costs, rings on every NIC with one: 3 x (3 + 1).
    const auto all = ReadingChoice{}.all();
    EXPECT_EQ(all.size(), 12U);
    EXPECT_EQ(all.front(), Reading{});
    for (auto one = all.begin(); one != all.end(); ++one) {
        EXPECT_EQ(std::count(all.begin(), all.end(), *one), 1);
    }
}

TEST(ReadingChoice, KeepsToWhatIsChosen) {
    ReadingChoice choice;
    choice.finalize = FinalizeReading::kPerLocalByte;
    choice.replica_ring = ReplicaRingReading::kEveryNic;
    EXPECT_EQ(
        choice.usual(),
        (Reading{
            FinalizeReading::kPerLocalByte, BulkCostReading::kPerParameter, ReplicaRingReading::kEveryNic}));
    EXPECT_EQ(choice.all().size(), 3U);
    choice.bulk_cost = BulkCostReading::kFloor;
    EXPECT_EQ(choice.all(), std::vector{choice.usual()});
}

TEST(Reading, IsCalledAsItsOptionIs) {
    EXPECT_EQ(name_of(FinalizeReading::kPerExpert), "per-expert");
    EXPECT_EQ(name_of(FinalizeReading::kSlowAllGather), "slow-all-gather");
    EXPECT_EQ(name_of(FinalizeReading::kPerLocalByte), "per-local-byte");
    EXPECT_EQ(name_of(BulkCostReading::kPerParameter), "per-parameter");
    EXPECT_EQ(name_of(BulkCostReading::kFloor), "floor");
    EXPECT_EQ(name_of(BulkCostReading::kPerExpert), "per-expert");
    EXPECT_EQ(name_of(ReplicaRingReading::kOneNic), "one-nic");
    EXPECT_EQ(name_of(ReplicaRingReading::kEveryNic), "every-nic");
}

TEST(ReadingChoice, LeavesTheFloorOutWhereItIsNotOpenUnlessItIsChosen) {
    // Of the twelve readings three have the floor, one for each way of finalising, with rings on one NIC.
    ReadingChoice choice;
    choice.is_floor_open = false;
    const auto all = choice.all();
    EXPECT_EQ(all.size(), 9U);
    EXPECT_TRUE(std::ranges::none_of(all, [](const Reading& one) { return one.bulk_cost == BulkCostReading::kFloor; }));
    choice.bulk_cost = BulkCostReading::kFloor;
    EXPECT_EQ(choice.all().size(), 6U);  // Three ways of finalising, two rings.
}

}  // namespace
}  // namespace refit
