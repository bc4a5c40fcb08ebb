// SPDX-License-Identifier: Apache-2.0
#include "rounds.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

namespace refit {
namespace {

using Row = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

std::vector<Row> rows_of(const TransferBlock& block) {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < block.size(); ++i) {
        rows.emplace_back(block.source[i], block.destination[i], block.box[i]);
    }
    return rows;
}

/// The most transfers of any rank.
std::size_t busiest(const TransferBlock& block) {
    std::map<std::pair<bool, std::uint32_t>, std::size_t> counts;
    std::size_t most = 0;
    for (std::size_t i = 0; i < block.size(); ++i) {
        most = std::max({most, ++counts[{true, block.source[i]}], ++counts[{false, block.destination[i]}]});
    }
    return most;
}

/// Rounds, if one ends only where the next transfer has a rank that is in it already.
std::size_t rounds_in(const TransferBlock& block) {
    std::size_t rounds = block.size() == 0 ? 0 : 1;
    std::set<std::pair<bool, std::uint32_t>> busy;
    for (std::size_t i = 0; i < block.size(); ++i) {
        const std::pair sender{true, block.source[i]};
        const std::pair receiver{false, block.destination[i]};
        if (busy.contains(sender) || busy.contains(receiver)) {
            ++rounds;
            busy.clear();
        }
        busy.insert(sender);
        busy.insert(receiver);
    }
    return rounds;
}

void expect_scheduled(const TransferBlock& block) {
    auto scheduled = block;
    put_in_rounds(scheduled);
    auto before = rows_of(block);
    auto after = rows_of(scheduled);
    std::ranges::sort(before);
    std::ranges::sort(after);
    EXPECT_EQ(before, after);
    EXPECT_LE(rounds_in(scheduled), busiest(block));
}

TEST(Rounds, TwoSendersNeverMeetAtAReceiver) {
    // Both senders owe both receivers. 0 to 0 makes room in the first round when 1 to 0 comes; 0 to 1 joins
    // that one.
    TransferBlock block;
    block.source = {0, 1, 0, 1};
    block.destination = {0, 0, 1, 1};
    block.box = {0, 1, 2, 3};
    put_in_rounds(block);
    EXPECT_EQ(rounds_in(block), 2U);
    EXPECT_EQ(rows_of(block), (std::vector<Row>{{1, 0, 1}, {0, 1, 2}, {0, 0, 0}, {1, 1, 3}}));
}

TEST(Rounds, AChainOfTransfersChangesPlaces) {
    // Transfers in this order want three rounds one after the other; 0-0, 1-1 | 0-1 | 1-0 go in two.
    TransferBlock block;
    block.source = {0, 1, 0, 1, 2, 2};
    block.destination = {0, 1, 1, 2, 0, 2};
    block.box = {0, 1, 2, 3, 4, 5};
    expect_scheduled(block);
}

TEST(Rounds, NeedNoMoreThanTheBusiestRankHasTransfers) {
    std::mt19937 engine{20261129};
    for (int trial = 0; trial < 300; ++trial) {
        std::uniform_int_distribution<std::uint32_t> ranks{0, 1 + static_cast<std::uint32_t>(engine() % 9)};
        TransferBlock block;
        for (std::uint32_t i = 0; i < engine() % 40; ++i) {
            block.source.push_back(ranks(engine));
            block.destination.push_back(ranks(engine));
            block.box.push_back(i);
        }
        expect_scheduled(block);
    }
}

TEST(Rounds, NothingStaysNothing) {
    TransferBlock block;
    put_in_rounds(block);
    EXPECT_EQ(block, TransferBlock{});
}

}  // namespace
}  // namespace refit
