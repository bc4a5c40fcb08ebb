// SPDX-License-Identifier: Apache-2.0
#include "refit/membership.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "../shipped.hpp"

namespace refit {
namespace {

GenerateLayout replicas_of(std::uint32_t tp, std::uint32_t dp, std::uint32_t ep = 1) {
    return {tp, 1, dp, ep, tp * dp};
}

const std::vector<GpuRun> kNoRuns;

TEST(Membership, ReadsNodesAndGpus) {
    EXPECT_EQ(parse_gpu_run("1node", 8).value(), (GpuRun{8, 1}));
    EXPECT_EQ(parse_gpu_run("3nodes", 4).value(), (GpuRun{12, 3}));
    EXPECT_EQ(parse_gpu_run("1gpu", 8).value(), (GpuRun{1, 0}));
    EXPECT_EQ(parse_gpu_run("16gpus", 8).value(), (GpuRun{16, 0}));
}

TEST(Membership, RefusesOtherTextsWithOneThatWorks) {
    for (const auto& [text, cure] : {std::pair{"8", "8node or 8gpu"},
                                     std::pair{"", "1node"},
                                     std::pair{"2racks", "2node"},
                                     std::pair{"0node", "write 1node"},
                                     std::pair{"-1gpu", "1gpu"},
                                     std::pair{"1.5node", "1node"},
                                     std::pair{"99999999999999999999gpu", "1048576gpu"},
                                     std::pair{"131073node", "131072node"}}) {
        const auto read = parse_gpu_run(text, 8);
        ASSERT_FALSE(read.has_value()) << text;
        EXPECT_EQ(read.error().front().code, ErrorCode::kInvalidInput);
        EXPECT_NE(read.error().front().message.find(cure), std::string::npos) << read.error().front().message;
    }
}

/// A replica has tp·pp GPUs; experts spread over 16 ranks bind two engines of 8.
TEST(Membership, AReplicaIsAnEngineOrThoseThatShareExperts) {
    EXPECT_EQ(replica_gpus({4, 2, 3, 1, 24}), 8U);
    EXPECT_EQ(replica_gpus(replicas_of(8, 4, 16)), 16U);
    EXPECT_EQ(replica_gpus(replicas_of(8, 4, 4)), 8U);
}

/// 256 GPUs are 8 replicas of 32. A node of 8 takes one along and leaves 24 idle; with 16 more, 40 make one
/// and leave 8.
TEST(Membership, ALostNodeTakesItsReplicaAndIdleGpusJoinThoseThatCome) {
    const auto change =
        change_members(replicas_of(32, 8), std::vector{GpuRun{8, 1}}, std::vector{GpuRun{16, 2}}, 8).value();
    EXPECT_EQ(change.replica_gpus, 32U);
    EXPECT_EQ(change.replicas_before, 8U);
    EXPECT_EQ(change.lost_replicas, 1U);
    EXPECT_EQ(change.new_replicas, 1U);
    EXPECT_EQ(change.idle_gpus, 8U);
    EXPECT_EQ(change.after, replicas_of(32, 8));
}

/// Replicas of 2: a node of 8 takes four, one GPU one. Of 16 replicas 16 - 4 - 1 = 11 are left, and one GPU
/// is idle.
TEST(Membership, SeveralLossesTakeDifferentReplicas) {
    const auto change =
        change_members(replicas_of(2, 16), std::vector{GpuRun{8, 1}, GpuRun{1, 0}}, kNoRuns, 8).value();
    EXPECT_EQ(change.lost_replicas, 5U);
    EXPECT_EQ(change.new_replicas, 0U);
    EXPECT_EQ(change.idle_gpus, 1U);
    EXPECT_EQ(change.after, replicas_of(2, 11));
}

/// Two nodes of two replicas of 16 leave 8 + 8 idle, which make no replica unless something comes.
TEST(Membership, IdleGpusAreLeftAloneWhereNothingComes) {
    const std::vector runs{GpuRun{8, 1}, GpuRun{8, 1}};
    EXPECT_EQ(change_members(replicas_of(16, 4), runs, kNoRuns, 8).value().idle_gpus, 16U);
    const auto joined = change_members(replicas_of(16, 4), runs, std::vector{GpuRun{16, 2}}, 8).value();
    EXPECT_EQ(joined.new_replicas, 2U);
    EXPECT_EQ(joined.replicas_after(), 4U);
}

TEST(Membership, RefusesTheLastReplicaAndWhatMakesNoneAtOnce) {
    // 2 replicas of 32: 8 nodes take both, 4 leave one. 24 GPUs make no replica of 32, 4 nodes do.
    const auto refused =
        change_members(replicas_of(32, 2), std::vector{GpuRun{64, 8}}, std::vector{GpuRun{24, 3}}, 8);
    ASSERT_FALSE(refused.has_value());
    ASSERT_EQ(refused.error().size(), 2U);
    EXPECT_EQ(refused.error()[0].rule, "last-replica");
    EXPECT_NE(refused.error()[0].message.find("at most --lose 4node leaves one"), std::string::npos)
        << refused.error()[0].message;
    EXPECT_EQ(refused.error()[1].rule, "no-whole-replica");
    EXPECT_NE(refused.error()[1].message.find("--gain 4node does"), std::string::npos)
        << refused.error()[1].message;
    // What is offered works.
    EXPECT_TRUE(change_members(replicas_of(32, 2), std::vector{GpuRun{32, 4}}, std::vector{GpuRun{32, 4}}, 8)
                    .has_value());
}

/// 31 of 32 idle GPUs need one more; a node is the least in nodes.
TEST(Membership, CountsIdleGpusInWhatItOffers) {
    const auto refused =
        change_members(replicas_of(32, 3), std::vector{GpuRun{8, 1}}, std::vector{GpuRun{7, 0}}, 8);
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error()[0].message.find("--gain 8gpu does"), std::string::npos)
        << refused.error()[0].message;
    EXPECT_TRUE(change_members(replicas_of(32, 3), std::vector{GpuRun{8, 1}}, std::vector{GpuRun{8, 0}}, 8)
                    .has_value());
}

TEST(Membership, OfOneReplicaNothingCanBeLost) {
    const auto refused = change_members(replicas_of(8, 1), std::vector{GpuRun{1, 0}}, kNoRuns, 8);
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error()[0].message.find("add one first: --gain 8gpu"), std::string::npos)
        << refused.error()[0].message;
}

/// The figures of both pull requests lie between the ends of a + b N. Seconds by GPUs, 32 to 1024.
TEST(Membership, TheShippedConstantsHoldEveryPublishedFigure) {
    const auto constants = shipped_library().membership().value();
    const std::vector<double> gpus{32, 64, 128, 256, 512, 1024};
    const auto holds =
        [&](const Constant& once, const Constant& per_gpu, const std::vector<double>& seconds) {
            for (std::size_t i = 0; i < gpus.size(); ++i) {
                EXPECT_GE(seconds[i], once.low + per_gpu.low * gpus[i]) << gpus[i];
                EXPECT_LE(seconds[i], once.high + per_gpu.high * gpus[i]) << gpus[i];
            }
        };
    holds(constants.shrink, constants.shrink_per_gpu, {1.53, 1.38, 1.44, 1.67, 2.03, 2.02});
    holds(constants.shrink, constants.shrink_per_gpu, {1.41, 1.17, 1.43, 1.67, 2.56, 3.79});
    holds(constants.grow, constants.grow_per_gpu, {1.73, 1.76, 1.79, 1.91, 2.17, 4.19});
    // The refit right after less the one before: 3.65 - 2.12 … 4.59 - 2.41 and 2.93 - 2.18 … 4.49 - 2.26.
    EXPECT_NEAR(constants.setup_after_shrink.low, 1.53, 1e-9);
    EXPECT_NEAR(constants.setup_after_shrink.high, 2.18, 1e-9);
    EXPECT_NEAR(constants.setup_after_grow.low, 0.75, 1e-9);
    EXPECT_NEAR(constants.setup_after_grow.high, 2.23, 1e-9);
    EXPECT_EQ(constants.gpus_least, 32U);
    EXPECT_EQ(constants.gpus_most, 1024U);
    EXPECT_EQ(constants.rebuild.kind, "assumed");
}

}  // namespace
}  // namespace refit
