// SPDX-License-Identifier: Apache-2.0
#include "refit/batches.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "random_refit.hpp"
#include "refit/check.hpp"
#include "refit/methods.hpp"

namespace refit {
namespace {

/// `each` messages from each of `senders` to each of `receivers`, which follow them in rank order.
Postings every_pair(std::uint32_t senders, std::uint32_t receivers, std::uint32_t each) {
    Postings postings;
    for (std::uint32_t from = 0; from < senders; ++from) {
        for (std::uint32_t to = 0; to < receivers; ++to) {
            for (std::uint32_t i = 0; i < each; ++i) {
                postings.add(from, senders + to);
            }
        }
    }
    return postings;
}

/// A37, and why a rank may not cut its own list: https://github.com/NVIDIA/Megatron-LM/issues/7189.
/// 24,000 = 8 x 3,000 operations a rank in batches of 256 need at least 93.75 of them: 94, and get no more,
/// since every rank has its operations spread alike.
TEST(Batches, A37_KeepTwentyFourThousandTransfersARankWithinTheLimit) {
    const auto postings = every_pair(8, 8, 3000);
    const auto batches = make_batches(postings, 256);
    EXPECT_EQ(batches.count, 94U);
    EXPECT_TRUE(check_batches(postings, batches, 256).empty());
    for (std::uint32_t rank = 0; rank < 16; ++rank) {
        const auto operations = operations_of(postings, batches, rank);
        ASSERT_EQ(operations.size(), 94U);
        std::size_t sum = 0;
        for (const auto& group : operations) {
            EXPECT_LE(group.size(), 256U);
            sum += group.size();
        }
        EXPECT_EQ(sum, 24'000U);
    }
}

TEST(Batches, HaveSendAndReceiveInTheSameBatchOnBothRanks) {
    const auto postings = every_pair(3, 2, 7);
    const auto batches = make_batches(postings, 4);
    std::set<std::pair<std::size_t, std::uint32_t>> sends;
    std::set<std::pair<std::size_t, std::uint32_t>> receives;
    for (std::uint32_t rank = 0; rank < 5; ++rank) {
        const auto operations = operations_of(postings, batches, rank);
        for (std::size_t batch = 0; batch < operations.size(); ++batch) {
            for (const auto& operation : operations[batch]) {
                (operation.is_send ? sends : receives).insert({batch, operation.posting});
            }
        }
    }
    EXPECT_EQ(sends.size(), postings.size());
    EXPECT_EQ(sends, receives);
}

/// A38: all-to-all among 1,025 ranks, themselves included, without 3 empty pairs. A rank has up to 2,050
/// operations, so one batch of 2,048 is too small.
TEST(Batches, A38_LeaveOutEmptyMessagesOnBothEndsAlike) {
    constexpr std::uint32_t kRanks = 1025;
    Postings postings;
    for (std::uint32_t from = 0; from < kRanks; ++from) {
        for (std::uint32_t to = 0; to < kRanks; ++to) {
            const bool is_empty =
                (from == 3 && to == 700) || (from == 700 && to == 3) || (from == 1024 && to == 0);
            if (!is_empty) {
                postings.add(from, to);
            }
        }
    }
    const auto batches = make_batches(postings, 2048);
    EXPECT_EQ(batches.count, 2U);
    EXPECT_TRUE(check_batches(postings, batches, 2048).empty());
}

TEST(Batches, PutARelayIntoALaterBatchThanWhatItFollows) {
    // 0 sends to 1, which passes on to 2 and 3; 4 sends to 5 meanwhile.
    Postings postings;
    postings.add(0, 1);
    postings.add(1, 2, 0);
    postings.add(1, 3, 0);
    postings.add(4, 5);
    const auto batches = make_batches(postings, 2);
    EXPECT_EQ(batches.batch, (std::vector<std::uint32_t>{0, 1, 1, 0}));
    EXPECT_EQ(batches.count, 2U);
    EXPECT_TRUE(check_batches(postings, batches, 2).empty());
}

TEST(Batches, AreFewerThanTwiceAsManyAsTheBusiestRankNeeds) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        testing_support::Dice dice{seed};
        Postings postings;
        const auto ranks = dice.between(2, 12);
        std::vector<std::uint64_t> operations(ranks, 0);
        for (auto left = dice.between(1, 400); left > 0; --left) {
            const auto from = dice.index(ranks);
            postings.add(from, static_cast<std::uint32_t>((from + 1 + dice.index(ranks - 1)) % ranks));
            ++operations[postings.source.back()];
            ++operations[postings.destination.back()];
        }
        const auto limit = static_cast<std::uint32_t>(dice.between(2, 40));
        const auto batches = make_batches(postings, limit);
        ASSERT_TRUE(check_batches(postings, batches, limit).empty()) << seed;
        const auto least = (*std::ranges::max_element(operations) + limit - 1) / limit;
        EXPECT_LT(batches.count, 2 * least) << seed;
        EXPECT_EQ(batches, make_batches(postings, limit));
    }
}

TEST(Batches, OfShippedPlansPassTheirCheck) {
    const auto scenario = shipped_scenario("qwen3-235b-h100");
    const auto workload = Workload::make(scenario);
    for (const auto method : {Method::kDirect, Method::kOptimal}) {
        const auto plan = make_plan(method, scenario, workload).value();
        for (const auto& stage : plan.stages) {
            const auto postings = postings_of(stage, plan.blocks, scenario.cluster);
            const auto batches = make_batches(postings, 256);
            EXPECT_TRUE(check_batches(postings, batches, 256).empty()) << name_of(method);
        }
    }
}

TEST(Batches, RefuseALimitThatARankSendingToItselfExceeds) {
    EXPECT_THROW(static_cast<void>(make_batches(every_pair(1, 1, 1), 1)), std::logic_error);
}

TEST(CheckBatches, FindsWhatIsWrong) {
    Postings postings;
    postings.add(0, 1);
    postings.add(1, 2, 0);
    postings.add(0, 2);
    const Batches good{2, {0, 1, 0}};
    EXPECT_TRUE(check_batches(postings, good, 2).empty());
    const auto rule_of = [&](const Batches& batches, std::uint32_t limit) {
        const auto faults = check_batches(postings, batches, limit);
        return faults.empty() ? "" : faults.front().rule;
    };
    EXPECT_EQ(rule_of({2, {0, 0, 1}}, 2), "batch-order");
    EXPECT_EQ(rule_of({2, {1, 0, 0}}, 2), "batch-order");
    EXPECT_EQ(rule_of({2, {0, 1, 0}}, 1), "batch-limit");
    EXPECT_EQ(rule_of({3, {0, 1, 0}}, 2), "batch-empty");
    EXPECT_EQ(rule_of({3, {0, 2, 0}}, 2), "batch-empty");
    EXPECT_EQ(rule_of({2, {0, 2, 0}}, 2), "batch-index");
    EXPECT_EQ(rule_of({2, {0, 1}}, 2), "batch-columns");
}

}  // namespace
}  // namespace refit
