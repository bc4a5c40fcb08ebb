// SPDX-License-Identifier: Apache-2.0
#include "pieces.hpp"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace refit {
namespace {

const std::vector<std::uint64_t> kShape{128, 3};
const std::vector<std::uint64_t> kBytes{2};

TEST(Pieces, AreCutAtRows) {
    // Two tensors of 128 rows of 6 bytes in three messages: 1536 / 3 = 512 bytes, nearest to 85 and 171 rows.
    RelayTable table;
    const std::vector<MessagePart> parts{{0, 0, 5, 2, Box::whole(kShape)}};
    append_messages(table, parts, kBytes, 3);
    ASSERT_EQ(table.messages.size(), 3U);
    EXPECT_EQ(table.messages[0], (Message{0, 1, 85 * 6}));
    EXPECT_EQ(table.messages[1], (Message{1, 2, 86 * 6}));
    EXPECT_EQ(table.messages[2], (Message{3, 1, 85 * 6}));
    EXPECT_EQ(table.parts[0], (MessagePart{0, 0, 5, 1, Box::whole(kShape).with(0, {0, 85})}));
    EXPECT_EQ(table.parts[1], (MessagePart{0, 0, 5, 1, Box::whole(kShape).with(0, {85, 128})}));
    EXPECT_EQ(table.parts[2], (MessagePart{0, 0, 6, 1, Box::whole(kShape).with(0, {0, 43})}));
    EXPECT_EQ(table.parts[3], (MessagePart{0, 0, 6, 1, Box::whole(kShape).with(0, {43, 128})}));
}

TEST(Pieces, KeepWholeTensorsTogether) {
    RelayTable table;
    const std::vector<MessagePart> parts{{0, 0, 0, 6, Box::whole(kShape)}};
    append_messages(table, parts, kBytes, 2);
    EXPECT_EQ(table.parts, (std::vector<MessagePart>{{0, 0, 0, 3, Box::whole(kShape)}, {0, 0, 3, 3, Box::whole(kShape)}}));
}

TEST(Pieces, LeaveOutEmptyMessages) {
    // Three rows cannot fill five messages.
    RelayTable table;
    const std::vector<MessagePart> parts{{0, 0, 0, 1, Box::whole(std::vector<std::uint64_t>{3, 2})}};
    append_messages(table, parts, kBytes, 5);
    EXPECT_EQ(table.messages.size(), 3U);
}

TEST(Pieces, CutTheLongestAxisWhereNoneIsFine) {
    RelayTable table;
    const std::vector<MessagePart> parts{{0, 0, 0, 1, Box::whole(std::vector<std::uint64_t>{2, 8, 4})}};
    append_messages(table, parts, kBytes, 2);
    EXPECT_EQ(table.parts[0].box.axes()[1], (Interval{0, 4}));
    EXPECT_EQ(table.parts[1].box.axes()[1], (Interval{4, 8}));
}

TEST(Pieces, CoverEachElementOnce) {
    std::mt19937_64 random{3};
    for (int round = 0; round < 300; ++round) {
        std::vector<MessagePart> parts;
        std::size_t elements = 0;
        for (std::uint32_t slice = 0; slice <= random() % 3; ++slice) {
            const std::vector<std::uint64_t> shape{1 + random() % 9, 1 + random() % 9};
            const auto tensors = static_cast<std::uint32_t>(1 + random() % 4);
            parts.push_back({0, slice, 0, tensors, Box::whole(shape)});
            elements += shape[0] * shape[1] * tensors;
        }
        RelayTable table;
        append_messages(table, parts, kBytes, 1 + random() % 7);
        std::map<std::vector<std::uint64_t>, int> seen;
        std::size_t bytes = 0;
        for (const auto& part : table.parts) {
            const auto axes = part.box.axes();
            for (auto tensor = part.first_tensor; tensor < part.first_tensor + part.tensors; ++tensor) {
                for (auto row = axes[0].begin; row < axes[0].end; ++row) {
                    for (auto column = axes[1].begin; column < axes[1].end; ++column) {
                        EXPECT_EQ((++seen[{part.slice, tensor, row, column}]), 1);
                    }
                }
            }
        }
        for (const auto& message : table.messages) {
            bytes += message.bytes;
        }
        EXPECT_EQ(seen.size(), elements);
        EXPECT_EQ(bytes, elements * 2);
    }
}

}  // namespace
}  // namespace refit
