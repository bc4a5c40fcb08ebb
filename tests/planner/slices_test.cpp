// SPDX-License-Identifier: Apache-2.0
#include "refit/slices.hpp"

#include <map>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "study.hpp"

namespace refit {
namespace {

TEST(Slices, AreThePairsOfHoldersAndReceivers) {
    // Rows 0 to 3 on ranks 0 and 2, rows 4 to 7 on 1 and 3; generators 4 and 6 want rows 0 to 3, 5 and 7 the others.
    const study::Layout layout{{8, 16}, 2, 2, 1, 1, 2, 2};
    const auto table = SliceTable::make(study::workload_of(layout), 4);
    ASSERT_EQ(table.slices().size(), 2U);
    const auto& first = table.slices()[0];
    EXPECT_EQ(table.rank_set(first.holders), (std::vector<std::uint32_t>{0, 2}));
    EXPECT_EQ(table.rank_set(first.receivers), (std::vector<std::uint32_t>{4, 6}));
    EXPECT_EQ(first.bytes, 4U * 16 * 2);
    ASSERT_EQ(table.parts(0).size(), 1U);
    const std::vector<std::uint64_t> shape{8, 16};
    EXPECT_EQ(table.parts(0)[0].box, Box::whole(shape).with(0, {0, 4}));
    EXPECT_EQ(table.parts(1)[0].box, Box::whole(shape).with(0, {4, 8}));
    EXPECT_EQ(table.element_bytes()[0], 2U);
}

TEST(Slices, AreMergedOverClassesAndLayers) {
    const auto scenario = shipped_scenario("deepseek-v3-h100");
    const auto workload = Workload::make(scenario);
    const auto table = SliceTable::make(workload, scenario.cluster.train_gpus());
    std::uint64_t delivered = 0;
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> pairs;
    for (std::size_t i = 0; i < table.slices().size(); ++i) {
        const auto& slice = table.slices()[i];
        delivered += slice.bytes * table.rank_set(slice.receivers).size();
        EXPECT_EQ((++pairs[{slice.holders, slice.receivers}]), 1);
        std::uint64_t bytes = 0;
        for (const auto& part : table.parts(i)) {
            bytes += part.box.volume() * part.tensors * table.element_bytes()[part.parameter];
        }
        EXPECT_EQ(bytes, slice.bytes);
    }
    EXPECT_EQ(delivered, workload.delivered_bytes().count());
}

TEST(Slices, OfPlainBytesAreMergedWhereSetsAreEqual) {
    const auto table = SliceTable::of({{0}, {2, 3}, {0}}, {{0, 1, 100}, {2, 1, 11}});
    ASSERT_EQ(table.slices().size(), 1U);
    EXPECT_EQ(table.slices()[0].bytes, 111U);
    EXPECT_EQ(table.parts(0).size(), 2U);
}

TEST(Slices, RefuseSetsWithoutRanks) { EXPECT_THROW(SliceTable::of({{}}, {}), std::logic_error); }

}  // namespace
}  // namespace refit
