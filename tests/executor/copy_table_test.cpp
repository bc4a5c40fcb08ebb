// SPDX-License-Identifier: Apache-2.0
#include "refit/copy_table.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace refit {
namespace {

std::uint64_t address_of(const std::byte* pointer) {
    return reinterpret_cast<std::uint64_t>(pointer);
}

// The oracle: byte after byte, with one loop for each of five axes and the run, and none of the code under
// test.
void copy_bytes(const StridedCopy& copy) {
    auto axes = copy.axes;
    std::array<std::uint64_t, 5> at{};
    for (at[0] = 0; at[0] < axes[0].extent; ++at[0])
        for (at[1] = 0; at[1] < axes[1].extent; ++at[1])
            for (at[2] = 0; at[2] < axes[2].extent; ++at[2])
                for (at[3] = 0; at[3] < axes[3].extent; ++at[3])
                    for (at[4] = 0; at[4] < axes[4].extent; ++at[4])
                        for (std::uint64_t byte = 0; byte < copy.run; ++byte) {
                            std::uint64_t from = copy.source + byte;
                            std::uint64_t to = copy.destination + byte;
                            for (std::size_t axis = 0; axis < 5; ++axis) {
                                from += at[axis] * axes[axis].source_stride;
                                to += at[axis] * axes[axis].destination_stride;
                            }
                            *reinterpret_cast<std::byte*>(to) = *reinterpret_cast<const std::byte*>(from);
                        }
}

struct Sides {
    std::vector<std::byte> source;
    std::vector<std::byte> destination;
};

// A box of a random tensor, as pack (dense destination), unpack (dense source) or both strided.
StridedCopy random_copy(std::mt19937_64& engine, Sides& sides) {
    const auto pick = [&](std::uint64_t low, std::uint64_t high) {
        return std::uniform_int_distribution<std::uint64_t>{low, high}(engine);
    };
    const std::size_t count = pick(0, 5);
    StridedCopy copy{.run = pick(1, 24) << pick(0, 3), .count = count};
    std::uint64_t source_stride = copy.run + (pick(0, 1) == 0 ? 0 : pick(0, 3) << pick(0, 4));
    std::uint64_t destination_stride = copy.run + (pick(0, 1) == 0 ? 0 : pick(0, 3) << pick(0, 4));
    for (std::size_t axis = count; axis-- > 0;) {
        const std::uint64_t extent = pick(1, 4);
        copy.axes.at(axis) = {extent, source_stride, destination_stride};
        source_stride *= extent + pick(0, 1);
        destination_stride *= extent + pick(0, 1);
    }
    const std::uint64_t shift = pick(0, 3) == 0 ? pick(0, 15) : 0;
    sides.source.resize(source_stride * 2 + copy.run + 64);
    sides.destination.assign(destination_stride * 2 + copy.run + 64, std::byte{0xee});
    std::ranges::generate(sides.source, [&] { return static_cast<std::byte>(engine()); });
    copy.source = (address_of(sides.source.data()) + 15) / 16 * 16 + shift;
    copy.destination = (address_of(sides.destination.data()) + 15) / 16 * 16 + shift;
    return copy;
}

TEST(CopyTable, CopiesAsALoopOverBytesDoes) {
    std::mt19937_64 engine{7};
    for (int round = 0; round < 3000; ++round) {
        Sides sides;
        const StridedCopy copy = random_copy(engine, sides);
        const auto before = sides.destination;
        copy_bytes(copy);
        const auto expected = sides.destination;
        sides.destination.assign(before.begin(), before.end());
        copy_runs(simplified(copy));
        ASSERT_EQ(sides.destination, expected) << "by runs, round " << round;
        for (const std::uint32_t tile_bytes : {16U, 48U, 256U, 32768U}) {
            std::ranges::copy(before, sides.destination.begin());
            run_copy_table(make_copy_table(std::vector{copy}, tile_bytes));
            ASSERT_EQ(sides.destination, expected) << "tiles of " << tile_bytes << ", round " << round;
        }
    }
}

TEST(CopyTable, RunsManyCopiesAsOneTableAndLeavesEmptyOnesOut) {
    std::mt19937_64 engine{8};
    std::vector<Sides> sides(40);
    std::vector<StridedCopy> copies;
    std::uint64_t bytes = 0;
    for (Sides& side : sides) {
        copies.push_back(random_copy(engine, side));
        bytes += copies.back().bytes();
        copies.push_back(
            {.source = copies.back().source, .destination = copies.back().destination, .run = 0});
    }
    const CopyTable table = make_copy_table(copies, 64);
    EXPECT_EQ(table.copies.size(), 40U);
    EXPECT_EQ(table.bytes, bytes);
    run_copy_table(table);
    std::vector<std::vector<std::byte>> got;
    for (Sides& side : sides) {
        got.push_back(side.destination);
        std::ranges::fill(side.destination, std::byte{0xee});
    }
    std::ranges::for_each(copies, copy_bytes);
    for (std::size_t index = 0; index < sides.size(); ++index) {
        EXPECT_EQ(got[index], sides[index].destination) << index;
    }
}

TEST(CopyTable, NoTileIsLargerThanAsked) {
    std::mt19937_64 engine{9};
    for (int round = 0; round < 500; ++round) {
        Sides sides;
        const CopyTable table = make_copy_table(std::vector{random_copy(engine, sides)}, 64);
        for (std::uint32_t index = 0; index < table.tiles; ++index) {
            const Tile tile = tile_at(table.copies[0], index - table.first_tiles[0]);
            ASSERT_GT(tile.units, 0U);
            ASSERT_LE(tile.units * table.copies[0].width, 64U);
        }
    }
}

// 3 x 2^31 rows: parts of 2^31 - 1 rows at most. No memory is touched.
TEST(CopyTable, SplitsWhatHasMoreRowsThanAnIndexHolds) {
    const std::uint64_t half = std::uint64_t{1} << 30;
    StridedCopy copy{.run = 1, .count = 2};
    copy.axes[0] = {6, half * 4, half * 2};
    copy.axes[1] = {half, 2, 2};
    const CopyTable table = make_copy_table(std::vector{copy});
    ASSERT_EQ(table.copies.size(), 6U);
    EXPECT_EQ(table.bytes, half * 6);
    for (std::size_t part = 0; part < 6; ++part) {
        EXPECT_EQ(table.copies[part].rows, half);
        EXPECT_EQ(table.copies[part].source, part * half * 4);
    }
}

// One run of 8 GiB + 16 B: 2^18 tiles of 32 KiB and one of a unit.
TEST(CopyTable, AddressesRunsBeyondFourGibibytes) {
    const std::uint64_t size = (std::uint64_t{8} << 30) + 16;
    const CopyTable table = make_copy_table(std::vector{StridedCopy{.run = size}});
    ASSERT_EQ(table.tiles, (1U << 18) + 1);
    const Tile last = tile_at(table.copies[0], table.tiles - 1);
    EXPECT_EQ(last.units, 1U);
    EXPECT_EQ(place_of(table.copies[0], last, 0).source, std::uint64_t{8} << 30);
}

TEST(StridedCopy, JoinsAxesThatAreContiguousOnBothSidesOnly) {
    // [4, 6, 8] bytes, all of axes 1 and 2: one run of 48 a row of axis 0, itself dense in the source only.
    StridedCopy copy{.run = 8, .count = 2};
    copy.axes[0] = {4, 48, 96};
    copy.axes[1] = {6, 8, 8};
    const StridedCopy result = simplified(copy);
    EXPECT_EQ(result.run, 48U);
    ASSERT_EQ(result.count, 1U);
    EXPECT_EQ(result.axes[0], (CopyAxis{4, 48, 96}));
    EXPECT_EQ(result.bytes(), copy.bytes());
}

TEST(StridedCopy, AccessesAsWideAsAddressRunAndStridesAllow) {
    StridedCopy copy{.source = 1024, .destination = 2048, .run = 64, .count = 1};
    copy.axes[0] = {4, 128, 64};
    EXPECT_EQ(access_width(copy), 16U);
    copy.axes[0].source_stride = 136;
    EXPECT_EQ(access_width(copy), 8U);
    copy.run = 60;
    EXPECT_EQ(access_width(copy), 4U);
    copy.source = 1026;
    EXPECT_EQ(access_width(copy), 2U);
    copy.destination = 2049;
    EXPECT_EQ(access_width(copy), 1U);
}

TEST(Divider, DividesAsTheProcessorDoes) {
    std::mt19937 engine{10};
    const auto below = [&](std::uint32_t end) {
        return std::uniform_int_distribution<std::uint32_t>{0, end - 1}(engine);
    };
    constexpr std::uint32_t kEnd = 1U << 31;
    for (int round = 0; round < 100000; ++round) {
        const std::uint32_t divisor = 1 + below(round % 2 == 0 ? 5000 : kEnd - 1);
        const Divider divider = Divider::of(divisor);
        for (const std::uint32_t dividend : {below(kEnd), below(divisor), divisor - 1, divisor, kEnd - 1}) {
            ASSERT_EQ(divider.quotient(dividend), dividend / divisor) << dividend << " / " << divisor;
        }
    }
}

}  // namespace
}  // namespace refit
