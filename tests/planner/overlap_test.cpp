// SPDX-License-Identifier: Apache-2.0
#include "refit/overlap.hpp"

#include <array>
#include <stdexcept>

#include <gtest/gtest.h>

namespace refit {
namespace {

Box box(std::initializer_list<Interval> axes) {
    std::vector<std::uint64_t> shape(axes.size(), 100);
    auto result = Box::whole(shape);
    std::size_t axis = 0;
    for (const auto& interval : axes) {
        result = result.with(axis++, interval);
    }
    return result;
}

TEST(Overlap, RowsAgainstColumnsGiveEveryQuarter) {
    // 4 x 4: two sources hold two rows each, two destinations want two columns each.
    const Distribution source{{4, 4}, {{{box({{0, 2}, {0, 4}})}, {0}}, {{box({{2, 4}, {0, 4}})}, {1}}}};
    const Distribution destination{{4, 4}, {{{box({{0, 4}, {0, 2}})}, {0}}, {{box({{0, 4}, {2, 4}})}, {1}}}};
    const auto cells = overlap(source, destination);
    ASSERT_EQ(cells.size(), 4U);
    EXPECT_EQ(cells[0].box, box({{0, 2}, {0, 2}}));
    EXPECT_EQ(cells[1].box, box({{2, 4}, {0, 2}}));
    EXPECT_EQ(cells[3].box, box({{2, 4}, {2, 4}}));
    EXPECT_EQ(cells[3].source, 1U);
    EXPECT_EQ(cells[3].destination, 1U);
}

TEST(Overlap, UnequalCutsMeetInPieces) {
    // 6 elements held in thirds, wanted in halves: [0,2) [2,3) | [3,4) [4,6).
    const Distribution source{{6}, {{{box({{0, 2}})}, {0}}, {{box({{2, 4}})}, {1}}, {{box({{4, 6}})}, {2}}}};
    const Distribution destination{{6}, {{{box({{0, 3}})}, {0}}, {{box({{3, 6}})}, {1}}}};
    const auto cells = overlap(source, destination);
    ASSERT_EQ(cells.size(), 4U);
    EXPECT_EQ(cells[1].box, box({{2, 3}}));
    EXPECT_EQ(cells[2].box, box({{3, 4}}));
}

TEST(Overlap, DifferentShapesAreABug) {
    const Distribution one{{4}, {{{box({{0, 4}})}, {0}}}};
    const Distribution other{{5}, {{{box({{0, 5}})}, {0}}}};
    EXPECT_THROW(static_cast<void>(overlap(one, other)), std::logic_error);
}

TEST(IsContiguousIn, HoldsForRunsOfRowsAndNotForColumns) {
    const auto outer = box({{0, 4}, {0, 8}, {0, 6}});
    EXPECT_TRUE(is_contiguous_in(outer, outer));
    EXPECT_TRUE(is_contiguous_in(box({{1, 3}, {0, 8}, {0, 6}}), outer));
    EXPECT_TRUE(is_contiguous_in(box({{1, 2}, {2, 5}, {0, 6}}), outer));
    EXPECT_TRUE(is_contiguous_in(box({{1, 2}, {2, 3}, {1, 4}}), outer));
    EXPECT_FALSE(is_contiguous_in(box({{1, 3}, {2, 5}, {0, 6}}), outer));
    EXPECT_FALSE(is_contiguous_in(box({{1, 2}, {2, 4}, {1, 4}}), outer));
}

}  // namespace
}  // namespace refit
