// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/strided_copy.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace refit::exec {
namespace {

Box box_of(std::initializer_list<Interval> axes) {
    auto box = Box::whole(std::vector<std::uint64_t>(axes.size(), 1));
    std::size_t axis = 0;
    for (const auto& interval : axes) {
        box = box.with(axis++, interval);
    }
    return box;
}

/// Columns [128, 256) of 8 x 4 x 256 elements of 2 bytes, to a region of its own: rows of 256 bytes follow
/// each other every 512 bytes over both outer axes, so these are one axis of 32.
TEST(StridedCopy, JoinsAxesThatGoOnWhereTheInnerOneEnds) {
    const auto from = box_of({{0, 8}, {0, 4}, {0, 256}});
    const auto box = from.with(2, {128, 256});
    const auto copy = copy_of(box, from, box, 2);
    EXPECT_EQ(copy.run, 256U);
    ASSERT_EQ(copy.axes, 1U);
    EXPECT_EQ(copy.count[0], 32U);
    EXPECT_EQ(copy.source_step[0], 512U);
    EXPECT_EQ(copy.destination_step[0], 256U);
    EXPECT_EQ(copy.source, 256U);
    EXPECT_EQ(copy.destination, 0U);
}

/// Rows [2, 5) of 8 x 10, between regions that both hold whole rows: one run of 3 x 10 x 4 bytes.
TEST(StridedCopy, OfWholeRowsIsOneRun) {
    const auto copy =
        copy_of(box_of({{2, 5}, {0, 10}}), box_of({{0, 8}, {0, 10}}), box_of({{1, 6}, {0, 10}}), 4);
    EXPECT_EQ(copy.axes, 0U);
    EXPECT_EQ(copy.run, 120U);
    EXPECT_EQ(copy.source, 80U);
    EXPECT_EQ(copy.destination, 40U);
}

Box random_box(std::mt19937_64& dice,
               std::size_t axes,
               const Box* inside = nullptr,
               const Box* around = nullptr) {
    auto box = Box::whole(std::vector<std::uint64_t>(axes, 1));
    for (std::size_t axis = 0; axis < axes; ++axis) {
        const auto low = inside != nullptr ? inside->axes()[axis].begin : 0;
        const auto high = inside != nullptr ? inside->axes()[axis].end : 9;
        const auto begin =
            around != nullptr ? dice() % (around->axes()[axis].begin + 1) : low + dice() % (high - low);
        const auto least = around != nullptr ? around->axes()[axis].end : begin + 1;
        box = box.with(axis, {begin, least + dice() % (std::max(high, least) - least + 1)});
    }
    return box;
}

/// Against a walk over all indices, for boxes of 1 to 5 axes, all widths, whole and in pieces, streamed and
/// not.
TEST(StridedCopy, MovesEachElementOfABoxAndNothingElse) {
    std::mt19937_64 dice{7};
    for (int round = 0; round < 400; ++round) {
        const auto axes = 1 + dice() % Box::kMostAxes;
        const auto width = std::uint64_t{1} << (dice() % 3);
        const auto box = random_box(dice, axes);
        const auto from = random_box(dice, axes, nullptr, &box);
        const auto to = random_box(dice, axes, nullptr, &box);
        std::vector<std::byte> source(from.volume() * width);
        for (std::size_t i = 0; i < source.size(); ++i) {
            source[i] = static_cast<std::byte>(1 + dice() % 255);
        }
        std::vector<std::byte> found(to.volume() * width, std::byte{0});
        auto expected = found;
        for (std::uint64_t n = 0; n < box.volume(); ++n) {
            auto rest = n;
            std::uint64_t in = 0;
            std::uint64_t out = 0;
            std::uint64_t in_step = width;
            std::uint64_t out_step = width;
            for (auto axis = axes; axis-- > 0;) {
                const auto at = box.axes()[axis].begin + rest % box.axes()[axis].length();
                rest /= box.axes()[axis].length();
                in += (at - from.axes()[axis].begin) * in_step;
                out += (at - to.axes()[axis].begin) * out_step;
                in_step *= from.axes()[axis].length();
                out_step *= to.axes()[axis].length();
            }
            std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(in),
                        width,
                        expected.begin() + static_cast<std::ptrdiff_t>(out));
        }
        const auto copy = copy_of(box, from, to, width);
        ASSERT_EQ(copy.bytes(), box.volume() * width);
        std::vector<StridedCopy> pieces;
        append_pieces(copy, round % 2 == 0 ? 16 : 1 << 20, pieces);
        for (const auto& piece : pieces) {
            EXPECT_TRUE(piece.axes == 0 || piece.source_span() <= (round % 2 == 0 ? 16 : 1 << 20));
            run_copy(piece, source.data(), found.data(), round % 3 == 0);
        }
        finish_streams();
        ASSERT_EQ(found, expected) << "round " << round;
    }
}

/// Runs long enough to bypass the caches, at places that are no multiple of a line.
TEST(StridedCopy, StreamsRunsThatBeginAnywhere) {
    for (std::uint64_t first = 0; first < 70; first += 7) {
        const auto from = box_of({{0, 3}, {0, 500}});
        const auto box = from.with(1, {first, 400});
        std::vector<std::byte> source(from.volume());
        for (std::size_t i = 0; i < source.size(); ++i) {
            source[i] = static_cast<std::byte>(i * 7 + 1);
        }
        std::vector<std::byte> plain(box.volume() + 1, std::byte{0});
        auto streamed = plain;
        run_copy(copy_of(box, from, box, 1), source.data(), plain.data(), false);
        run_copy(copy_of(box, from, box, 1), source.data(), streamed.data(), true);
        finish_streams();
        EXPECT_EQ(streamed, plain);
        EXPECT_EQ(streamed.back(), std::byte{0});
    }
}

}  // namespace
}  // namespace refit::exec
