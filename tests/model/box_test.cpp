// SPDX-License-Identifier: Apache-2.0
#include "refit/box.hpp"

#include <array>
#include <random>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace refit {
namespace {

using Shape = std::vector<std::uint64_t>;

TEST(Box, OfAWholeTensorBeginsAtZeroOnEveryAxis) {
    const auto box = Box::whole(Shape{3, 4, 5});
    ASSERT_EQ(box.axes().size(), 3U);
    EXPECT_EQ(box.axes()[2], (Interval{0, 5}));
    EXPECT_EQ(box.volume(), 60U);  // 3 · 4 · 5.
}

TEST(Box, TakesOneToFiveAxes) {
    EXPECT_EQ(Box::whole(Shape{7}).volume(), 7U);
    EXPECT_EQ(Box::whole(Shape{2, 2, 2, 2, 2}).volume(), 32U);
    EXPECT_THROW(static_cast<void>(Box::whole(Shape{})), std::logic_error);
    EXPECT_THROW(static_cast<void>(Box::whole(Shape{1, 1, 1, 1, 1, 1})), std::logic_error);
}

TEST(Box, ReplacesOneAxisAndLeavesTheOriginal) {
    const auto box = Box::whole(Shape{10, 10});
    const auto part = box.with(1, {2, 5});
    EXPECT_EQ(part.axes()[0], (Interval{0, 10}));
    EXPECT_EQ(part.axes()[1], (Interval{2, 5}));
    EXPECT_EQ(part.volume(), 30U);  // 10 · 3.
    EXPECT_EQ(box.volume(), 100U);
    EXPECT_NE(part, box);
    EXPECT_EQ(part.with(1, {0, 10}), box);
}

TEST(Box, RefusesAnAxisThatIsNotThereAndAnIntervalThatEndsBeforeItBegins) {
    const auto box = Box::whole(Shape{10, 10});
    EXPECT_THROW(static_cast<void>(box.with(2, {0, 1})), std::logic_error);
    EXPECT_THROW(static_cast<void>(box.with(0, {5, 4})), std::logic_error);
}

TEST(Box, MayBeEmpty) {
    EXPECT_EQ(Box::whole(Shape{10, 10}).with(0, {4, 4}).volume(), 0U);
}

TEST(Intersection, HasTheElementsOfBoth) {
    const auto whole = Box::whole(Shape{10, 10});
    const auto common = intersection(whole.with(0, {2, 6}), whole.with(0, {4, 9}).with(1, {1, 3}));
    ASSERT_TRUE(common.has_value());
    EXPECT_EQ(*common, whole.with(0, {4, 6}).with(1, {1, 3}));
}

TEST(Intersection, OfBoxesThatOnlyTouchIsNothing) {
    const auto whole = Box::whole(Shape{10, 10});
    EXPECT_FALSE(intersection(whole.with(0, {0, 5}), whole.with(0, {5, 10})).has_value());
    EXPECT_FALSE(intersection(whole.with(0, {0, 5}), whole.with(0, {3, 3})).has_value());
}

TEST(Intersection, RefusesBoxesOfDifferentRank) {
    EXPECT_THROW(static_cast<void>(intersection(Box::whole(Shape{2}), Box::whole(Shape{2, 2}))),
                 std::logic_error);
}

TEST(Intersection, AgreesWithCountingElementsOneByOne) {
    std::mt19937 random{7};
    std::uniform_int_distribution<std::uint64_t> bound{0, 5};
    const auto whole = Box::whole(Shape{5, 5});
    const auto draw = [&] {
        auto box = whole;
        for (std::size_t axis = 0; axis < 2; ++axis) {
            const auto a = bound(random);
            const auto b = bound(random);
            box = box.with(axis, {std::min(a, b), std::max(a, b)});
        }
        return box;
    };
    const auto has = [](const Box& box, std::uint64_t i, std::uint64_t j) {
        return i >= box.axes()[0].begin && i < box.axes()[0].end && j >= box.axes()[1].begin &&
               j < box.axes()[1].end;
    };
    for (int round = 0; round < 500; ++round) {
        const auto a = draw();
        const auto b = draw();
        std::uint64_t count = 0;
        for (std::uint64_t i = 0; i < 5; ++i) {
            for (std::uint64_t j = 0; j < 5; ++j) {
                count += has(a, i, j) && has(b, i, j) ? 1U : 0U;
            }
        }
        const auto common = intersection(a, b);
        EXPECT_EQ(common ? common->volume() : 0, count);
        EXPECT_EQ(common.has_value(), count > 0);
        EXPECT_EQ(common, intersection(b, a));
    }
}

}  // namespace
}  // namespace refit
