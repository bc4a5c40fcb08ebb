// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/copy_table.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace refit::exec {
namespace {

std::uint64_t address_of(const std::byte* pointer) {
    return reinterpret_cast<std::uint64_t>(pointer);
}

// The oracle: byte after byte, each with its places by division, and none of the code under test.
void copy_bytes(const StridedCopy& copy) {
    for (std::uint64_t byte = 0; byte < copy.bytes(); ++byte) {
        std::uint64_t from = copy.source + byte % copy.run;
        std::uint64_t to = copy.destination + byte % copy.run;
        std::uint64_t row = byte / copy.run;
        for (std::size_t axis = copy.axes; axis-- > 0;) {
            from += row % copy.count[axis] * copy.source_step[axis];
            to += row % copy.count[axis] * copy.destination_step[axis];
            row /= copy.count[axis];
        }
        *reinterpret_cast<std::byte*>(to) = *reinterpret_cast<const std::byte*>(from);
    }
}

void set_axis(StridedCopy& copy,
              std::size_t axis,
              std::uint64_t count,
              std::uint64_t source,
              std::uint64_t destination) {
    copy.axes = std::max(copy.axes, axis + 1);
    copy.count.at(axis) = count;
    copy.source_step.at(axis) = source;
    copy.destination_step.at(axis) = destination;
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
    StridedCopy copy;
    copy.run = pick(1, 24) << pick(0, 3);
    std::uint64_t source_stride = copy.run + (pick(0, 1) == 0 ? 0 : pick(0, 3) << pick(0, 4));
    std::uint64_t destination_stride = copy.run + (pick(0, 1) == 0 ? 0 : pick(0, 3) << pick(0, 4));
    for (std::size_t axis = count; axis-- > 0;) {
        const std::uint64_t extent = pick(1, 3);
        set_axis(copy, axis, extent, source_stride, destination_stride);
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
    for (int round = 0; round < 300; ++round) {
        Sides sides;
        const StridedCopy copy = random_copy(engine, sides);
        const auto before = sides.destination;
        copy_bytes(copy);
        const auto expected = sides.destination;
        sides.destination.assign(before.begin(), before.end());
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
    for (int round = 0; round < 100; ++round) {
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
    StridedCopy copy{0, 0, 1};
    set_axis(copy, 0, 6, half * 4, half * 2);
    set_axis(copy, 1, half, 2, 2);
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
    const CopyTable table = make_copy_table(std::vector{StridedCopy{0, 0, size}});
    ASSERT_EQ(table.tiles, (1U << 18) + 1);
    const Tile last = tile_at(table.copies[0], table.tiles - 1);
    EXPECT_EQ(last.units, 1U);
    EXPECT_EQ(place_of(table.copies[0], last, 0).source, std::uint64_t{8} << 30);
}

// [4, 6, 8, 2] of 1 byte: axes 2 and 3 are one run of 16; the 6 rows of axis 1 go on on both sides: one run
// of 96 a row of axis 0, which is dense in the source only.
TEST(CopyTable, JoinsAxesThatGoOnOnBothSidesOnly) {
    StridedCopy copy{0, 0, 16};
    set_axis(copy, 0, 4, 96, 192);
    set_axis(copy, 1, 6, 16, 16);
    const CopyTable table = make_copy_table(std::vector{copy});
    ASSERT_EQ(table.copies.size(), 1U);
    EXPECT_EQ(table.copies[0].run_units, 6U);
    EXPECT_EQ(table.copies[0].axes, 1U);
    EXPECT_EQ(table.copies[0].rows, 4U);
    // Two outer axes of 3 and 5 rows, each 32 bytes after the one before on both sides: one of 15.
    StridedCopy rows{0, 0, 16};
    set_axis(rows, 0, 3, 160, 160);
    set_axis(rows, 1, 5, 32, 32);
    EXPECT_EQ(make_copy_table(std::vector{rows}).copies[0].axes, 1U);
}

TEST(CopyTable, AccessesAsWideAsAddressRunAndStepsAllow) {
    StridedCopy copy{1024, 2048, 64};
    set_axis(copy, 0, 4, 128, 64);
    EXPECT_EQ(access_width(copy), 16U);
    copy.source_step[0] = 136;
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
    for (int round = 0; round < 20000; ++round) {
        const std::uint32_t divisor = 1 + below(round % 2 == 0 ? 5000 : kEnd - 1);
        const Divider divider = Divider::of(divisor);
        for (const std::uint32_t dividend : {below(kEnd), below(divisor), divisor - 1, divisor, kEnd - 1}) {
            ASSERT_EQ(divider.quotient(dividend), dividend / divisor) << dividend << " / " << divisor;
        }
    }
}

}  // namespace
}  // namespace refit::exec
