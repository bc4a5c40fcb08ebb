// SPDX-License-Identifier: Apache-2.0
#include "refit/memory.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/methods.hpp"

namespace refit {
namespace {

PeakBytes peak_of(Method method,
                  const std::string& name,
                  std::initializer_list<std::pair<std::string, std::string>> changes = {}) {
    const auto scenario = shipped_scenario(name, changes);
    const auto workload = Workload::make(scenario);
    return peak_bytes(make_plan(method, scenario, workload).value(), scenario, workload);
}

TEST(PackTarget, IsTwoPercentOfTheGpuUpToTheCap) {
    // 79.2 GiB x 0.02 = 1.70 GB; a GPU of 288 GiB would pack 6.2 GB, but packs end at 5 GiB.
    const auto engine = shipped_library().engine("nemo-rl").value();
    EXPECT_EQ(pack_target(engine, Bytes{std::uint64_t{85'040'352'461}}).count(), 1'700'807'049U);
    EXPECT_EQ(pack_target(engine, 288_GiB), 5_GiB);
}

TEST(PeakBytes, AMatrixLargerThanAPackFillsOnePackAlone) {
    // 8 GiB in one tensor: the trainer holds it as a list and packed, the receiver once.
    const auto peak = peak_of(Method::kGatherBroadcast, "reshard-one-domain");
    EXPECT_EQ(peak.train, 16_GiB);
    EXPECT_EQ(peak.generation, 8_GiB);
}

TEST(PeakBytes, OneBufferHoldsOnePack) {
    const auto two = peak_of(Method::kGatherBroadcast, "deepseek-v3-h100");
    const auto one = peak_of(
        Method::kGatherBroadcast, "deepseek-v3-h100", {{"engine.options.NRL_REFIT_NUM_BUFFERS", "1"}});
    EXPECT_LT(one.train, two.train);
    EXPECT_GE(one.train * 2, two.train);
}

TEST(PeakBytes, ADirectReceiverHoldsOneRegionAStream) {
    // DeepSeek-V3, TP32: the largest region is an expert projection's share, 256 x 64 x 7168 x 2 B = 235 MB,
    // two streams. A trainer stacks 16 experts, 16 x 2048 x 7168 x 2 B = 470 MB; but the embedding, whole on
    // TP1, is larger: 129,280 x 7168 x 2 B, held twice.
    const auto peak = peak_of(Method::kDirect, "deepseek-v3-h100");
    EXPECT_EQ(peak.generation.count(), 2U * 256 * 64 * 7168 * 2);
    EXPECT_EQ(peak.train.count(), 2U * 129'280 * 7168 * 2);
}

MemoryAccount account_of(Method method,
                         const std::string& name,
                         std::initializer_list<std::pair<std::string, std::string>> changes = {}) {
    const auto scenario = shipped_scenario(name, changes);
    const auto workload = Workload::make(scenario);
    return account_memory(make_plan(method, scenario, workload).value(), scenario, workload);
}

Bytes bytes_of(const StageMemory& memory, MemoryCause cause) {
    for (const auto& use : memory.uses) {
        if (use.cause == cause) {
            return use.bytes;
        }
    }
    return {};
}

TEST(MemoryAccount, ATrainerHoldsPacksTwiceAndTheRestOfAnExportTask) {
    const auto account = account_of(Method::kGatherBroadcast, "deepseek-v3-h100");
    ASSERT_EQ(account.train.size(), 1U);
    ASSERT_EQ(account.generation.size(), 1U);
    const auto& train = account.train.front();
    EXPECT_EQ(train.stage, 0U);
    EXPECT_EQ(train.rank, RankId{0});
    EXPECT_EQ(bytes_of(train, MemoryCause::kPackLists), bytes_of(train, MemoryCause::kPacks));
    // A task gathers one expert projection of each of the 16 ranks, 2048 x 7168 x 2 B; one closes the pack,
    // 15 wait.
    EXPECT_EQ(bytes_of(train, MemoryCause::kGatherOutput).count(), 15U * 2048 * 7168 * 2);
    EXPECT_EQ(train.total(),
              bytes_of(train, MemoryCause::kPacks) * 2 + bytes_of(train, MemoryCause::kGatherOutput));
    // Both sides have GPUs of the same memory: receivers hold the same packs, once.
    EXPECT_EQ(account.generation.front().uses,
              (std::vector<MemoryUse>{{MemoryCause::kReceivedPacks, bytes_of(train, MemoryCause::kPacks)}}));
    EXPECT_EQ(account.generation.front().rank, RankId{256});
}

TEST(MemoryAccount, WithoutExpertsNothingWaitsBesideThePacks) {
    // Reshard packs no expert: one TP or plain tensor a task.
    const auto account = account_of(Method::kHybrid, "deepseek-v3-h100");
    for (const auto& memory : account.train) {
        EXPECT_EQ(bytes_of(memory, MemoryCause::kGatherOutput), Bytes{});
    }
}

TEST(MemoryAccount, BulkStagesAreAccountedEachWithItsRank) {
    // Stage 0 has the embedding, 129,280 x 7168 x 2 B, and three dense layers; stages 1 to 15 have experts,
    // of which each of 16 trainers stacks 16 a projection.
    const auto account = account_of(Method::kDirect, "deepseek-v3-h100");
    ASSERT_EQ(account.train.size(), 16U);
    EXPECT_EQ(account.train[0].uses,
              (std::vector<MemoryUse>{{MemoryCause::kStacks, Bytes{std::uint64_t{129'280} * 7168 * 2}},
                                      {MemoryCause::kStaging, Bytes{std::uint64_t{129'280} * 7168 * 2}}}));
    EXPECT_EQ(bytes_of(account.train[5], MemoryCause::kStaging).count(), 16U * 2048 * 7168 * 2);
    EXPECT_EQ(account.train[5].rank, RankId{80});
    EXPECT_EQ(MemoryAccount::worst(account.train)->stage, 0U);
    // A receiver's region of an expert projection is larger than that of a dense one: 256 x 64 rows to 18,432
    // / 32.
    EXPECT_EQ(MemoryAccount::worst(account.generation)->stage, 1U);
    EXPECT_EQ(MemoryAccount::worst(account.generation)->rank, RankId{256});
}

TEST(MemoryAccount, GatheredPacksStayOnTheTrainersThatDirectSendsFrom) {
    const auto account = account_of(
        Method::kDirect, "deepseek-v3-h100", {{"engine.options.direct_source", "gathered"}});
    const auto broadcast = account_of(Method::kGatherBroadcast, "deepseek-v3-h100");
    ASSERT_EQ(account.train.size(), 17U);
    EXPECT_EQ(account.train[0].stage, 0U);
    EXPECT_EQ(bytes_of(account.train[0], MemoryCause::kPackLists),
              bytes_of(broadcast.train[0], MemoryCause::kPackLists));
    EXPECT_EQ(bytes_of(account.train[0], MemoryCause::kGatherOutput),
              bytes_of(broadcast.train[0], MemoryCause::kGatherOutput));
    EXPECT_EQ(account.train[1].stage, 1U);
    EXPECT_EQ(account.generation.size(), 16U);
}

TEST(MemoryAccount, RelayedMessagesTakeOneAStreamOnBothSides) {
    const auto account =
        account_of(Method::kOptimal, "qwen3-235b-h100", {{"engine.options.NRL_REFIT_NUM_STREAMS", "3"}});
    const auto once =
        account_of(Method::kOptimal, "qwen3-235b-h100", {{"engine.options.NRL_REFIT_NUM_STREAMS", "1"}});
    ASSERT_EQ(account.train.size(), 1U);
    EXPECT_EQ(account.peak().train, once.peak().train * 3);
    EXPECT_EQ(account.peak().generation, account.peak().train);
    EXPECT_EQ(account.generation.front().uses.front().cause, MemoryCause::kMessages);
}

TEST(MemoryAccount, AShadowCopyAddsTheReceiversWeightsThroughout) {
    const auto plain = account_of(Method::kHybrid, "deepseek-v3-h100");
    const auto shadowed =
        account_of(Method::kHybrid, "deepseek-v3-h100", {{"engine.options.shadow_copy", "true"}});
    const auto scenario = shipped_scenario("deepseek-v3-h100");
    const Bytes weights{std::ranges::max(Workload::make(scenario).generator_bytes())};
    EXPECT_EQ(shadowed.peak().generation, plain.peak().generation + weights);
    EXPECT_EQ(shadowed.peak().train, plain.peak().train);
    for (const auto& memory : shadowed.generation) {
        EXPECT_EQ(bytes_of(memory, MemoryCause::kShadowCopy), weights);
    }
}

TEST(MemoryAccount, ALoneRootPacksAndTheOtherTrainersDoNot) {
    // Eight roots: each packs every eighth pack and, in a group of all, receives those of the other seven.
    const auto all =
        account_of(Method::kGatherBroadcast, "deepseek-v3-h100", {{"engine.options.broadcast_senders", "8"}});
    const auto alone = account_of(
        Method::kGatherBroadcast,
        "deepseek-v3-h100",
        {{"engine.options.broadcast_senders", "8"}, {"engine.options.broadcast_group", "generators"}});
    EXPECT_EQ(bytes_of(alone.train.front(), MemoryCause::kReceivedPacks), Bytes{});
    EXPECT_EQ(bytes_of(all.train.front(), MemoryCause::kReceivedPacks) +
                  bytes_of(all.train.front(), MemoryCause::kPacks),
              alone.generation.front().total());
    EXPECT_EQ(bytes_of(all.train.front(), MemoryCause::kPacks),
              bytes_of(alone.train.front(), MemoryCause::kPacks));
}

}  // namespace
}  // namespace refit
