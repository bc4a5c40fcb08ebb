// SPDX-License-Identifier: Apache-2.0
// Cases from public bug reports that speak of NCCL M2N; the number in a test's name is the case's id in
// docs/public_reports.md.
#include <algorithm>

#include <gtest/gtest.h>

#include "m2n_cases.hpp"
#include "refit/m2n.hpp"
#include "refit/m2n_limits.hpp"

namespace refit {
namespace {

using m2n_cases::blocks;
using m2n_cases::call;

/// What a rank stages for a column of `rows` elements of 1 B, whole on either side.
std::vector<M2nRefusal> refusals_of_bytes(std::uint64_t rows, Bytes staging) {
    M2nSettings settings;
    settings.staging = staging;
    return m2n_refusals(call({rows}, 1, blocks(1, 1, 0, 0), blocks(1, 1, 0, 1)), settings);
}

TEST(PublicReportsM2n, A35_FourGibibytesOfStagingAreRefusedNotHung) {
    // int8 131072 x 131072 = 16 GiB, rows on 4 to columns on 4: 4 GiB a rank, 16 pairs of 1 GiB.
    const auto one = call({131'072, 131'072}, 1, blocks(1, 4, 0, 0), blocks(1, 4, 1, 4));
    const auto usual = m2n_refusals(one, {});
    ASSERT_EQ(usual.size(), 1U);
    EXPECT_EQ(
        usual[0],
        (M2nRefusal{M2nLimit::kStaging, std::nullopt, std::nullopt, std::nullopt, 1ULL << 32U, 1ULL << 31U}));
    // A bucket of 4 GiB, as in the report, does not help: M2N hangs at 2^32 B.
    M2nSettings wide;
    wide.staging = 4_GiB;
    const auto refused = m2n_refusals(one, wide);
    ASSERT_EQ(refused.size(), 1U);
    EXPECT_EQ(refused[0].allowed, (1ULL << 32U) - 1);
    EXPECT_NE(to_fault(refused[0]).message.find("cut it into 2 calls"), std::string::npos);
    EXPECT_NE(to_fault(refusals_of_bytes((1ULL << 31U) + 1, 2_GiB).front())
                  .message.find("PACK_BUFFSIZES=2147483649:4 would hold it"),
              std::string::npos);
    // Three quarters of it worked: 3 GiB a rank.
    const auto less = call({131'072, 98'304}, 1, blocks(1, 4, 0, 0), blocks(1, 4, 1, 4));
    const auto plan = m2n_plan(less, wide).value();
    EXPECT_EQ(plan.pairs.size(), 16U);
    EXPECT_EQ(plan.totals.max_rank_inject_tx, 3ULL << 30U);
}

TEST(PublicReportsM2n, A35_SizesAroundTheBordersArePlannedOrRefused) {
    for (const std::uint64_t size : {(1ULL << 31U) - 1, 1ULL << 31U}) {
        EXPECT_TRUE(refusals_of_bytes(size, 2_GiB).empty()) << size;
    }
    EXPECT_EQ(refusals_of_bytes((1ULL << 31U) + 1, 2_GiB).size(), 1U);
    EXPECT_TRUE(refusals_of_bytes((1ULL << 32U) - 1, 8_GiB).empty());
    EXPECT_EQ(refusals_of_bytes(1ULL << 32U, 8_GiB).size(), 1U);
    EXPECT_EQ(refusals_of_bytes((1ULL << 32U) + 1, 8_GiB).size(), 1U);
    EXPECT_EQ(to_fault(refusals_of_bytes(1ULL << 32U, Bytes{}).front()).rule, "PACK_BUFFSIZES")
        << "no bucket at all";
}

TEST(PublicReportsM2n, A66_AnEmptyOrUnevenShardIsRefusedByItsRemainder) {
    // 512 rows over 30 ranks: torch.chunk gives 28 x 18, 8 and 0; 512 = 30 x 17 + 2.
    const auto refusals = m2n_refusals(call({512}, 2, blocks(1, 30, 0, 0), blocks(1, 2, 0, 30)), {});
    ASSERT_EQ(refusals.size(), 1U);
    EXPECT_EQ(refusals[0].limit, M2nLimit::kUnequalShards);
    EXPECT_EQ(refusals[0].found, 2U);
}

TEST(PublicReportsM2n, A68_FullReplicationOnOneAxisServesOneDestinationEach) {
    const m2n_cases::Side source{{4}, {m2n_cases::replicate()}, 0};
    const m2n_cases::Side destination{{4}, {m2n_cases::replicate()}, 4};
    const auto plan = m2n_plan(call({16}, 2, source, destination), {}).value();
    ASSERT_EQ(plan.injections.size(), 4U);
    for (std::uint32_t i = 0; i < 4; ++i) {
        EXPECT_EQ(plan.injections[i].source, RankId{i});
        EXPECT_EQ(plan.injections[i].destination, RankId{4 + i});
    }
    EXPECT_EQ(plan.totals.ring_bytes + plan.totals.fanout_bytes, 0U);
}

TEST(PublicReportsM2n, A69_TwoCutAxesAreRefusedAndFourCallsOfOneAreNot) {
    // 8 experts x 64 x 32 on EP4 x ETP2: two mesh axes cut.
    const m2n_cases::Side experts{{4, 2}, {m2n_cases::shard(0), m2n_cases::shard(1)}, 0};
    const auto refusals = m2n_refusals(call({8, 64, 32}, 2, experts, blocks(1, 2, 0, 8)), {});
    ASSERT_EQ(refusals.size(), 1U);
    EXPECT_EQ(refusals[0].limit, M2nLimit::kShardAxes);
    // The two experts of each EP rank by themselves: two ranks with half of the rows each, to one of the
    // generators.
    for (std::uint32_t expert_rank = 0; expert_rank < 4; ++expert_rank) {
        const auto part =
            call({2, 64, 32}, 2, blocks(1, 2, 1, 2 * expert_rank), blocks(1, 1, 0, 8 + expert_rank / 2));
        const auto plan = m2n_plan(part, {}).value();
        EXPECT_EQ(plan.pairs.size(), 2U);
        EXPECT_EQ(plan.totals.inject_bytes, 2U * 64 * 32 * 2);
    }
}

}  // namespace
}  // namespace refit
