// SPDX-License-Identifier: Apache-2.0
#include "refit/losses.hpp"

#include <gtest/gtest.h>

#include "../shipped.hpp"

namespace refit {
namespace {

using Numbers = std::vector<std::uint32_t>;

io::ScenarioDraft draft_of(std::initializer_list<std::pair<std::string, std::string>> fields) {
    io::ScenarioDraft draft;
    draft.apply({"system", "h100-nvl8", ""});
    for (const auto& [field, value] : fields) {
        draft.apply({field, value, ""});
    }
    return draft;
}

/// Two stages of TP2 with two copies each: ranks 0 and 2 hold the first half of stage 0's tensors, 1 and 3
/// the second, 4 and 6, 5 and 7 those of stage 1. Generators 8 and 9, 10 and 11 are engines.
Result<Scenario> dense_without(const std::string& lost) {
    return io::resolve(draft_of({{"model", "qwen3-0.6b/16"},
                                 {"train.layout", "tp2.pp2"},
                                 {"train.gpus", "8"},
                                 {"generate.layout", "tp2"},
                                 {"generate.gpus", "4"},
                                 {"lost", lost}}),
                       shipped_library());
}

TEST(Losses, ReadsRanksOfTheJobAndOfASide) {
    EXPECT_EQ(parse_ranks("9,3,7-9,trainer:1,generation:0-1", 4, 8).value(), (Numbers{1, 3, 4, 5, 7, 8, 9}));
    EXPECT_TRUE(parse_ranks("", 4, 8).value().empty());
    EXPECT_EQ(ranks_text({1, 3, 4, 5, 7, 8}), "1,3-5,7-8");
    EXPECT_EQ(ranks_text({}), "");
}

TEST(Losses, RefusesAllThatIsNoRankAtOnce) {
    const auto refused = parse_ranks("3,foo,12,5-2,generation:8,-1,gpu:1,4294967296", 4, 8);
    ASSERT_FALSE(refused);
    ASSERT_EQ(refused.error().size(), 7U);
    EXPECT_EQ(refused.error()[0].message.find("'foo' names no ranks"), 0U);
    EXPECT_EQ(refused.error()[1].message,
              "'12' names ranks that the job has not: there are 12 ranks, 0 to 11");
    EXPECT_EQ(refused.error()[3].message,
              "'generation:8' names ranks that the job has not: there are 8 generators, 0 to 7");
    for (const auto& fault : refused.error()) {
        EXPECT_EQ(fault.code, ErrorCode::kInvalidInput);
    }
}

TEST(Losses, LeaveATrainersPeersAndTakeAGeneratorsReplica) {
    const auto scenario = dense_without("3,trainer:4,8").value();
    EXPECT_EQ(scenario.cluster.losses(), (Losses{{3, 4, 8}, {9}}));
    EXPECT_EQ(scenario.cluster.active_gpus(), 8U);
    EXPECT_EQ(scenario.cluster.active_trainers(), 6U);
    EXPECT_EQ(survivors(scenario.cluster.losses(), 12), (Numbers{0, 1, 2, 5, 6, 7, 10, 11}));
    EXPECT_EQ(scenario.cluster.losses().absent(), (Numbers{3, 4, 8, 9}));
    EXPECT_EQ(scenario.cluster.nic_share(RankId{9}), 0.0);
    EXPECT_EQ(scenario.cluster.nic_share(RankId{10}), 1.0);
}

/// Experts over all eight generators of eight engines: they serve together.
TEST(Losses, TakeAllEnginesOverWhichExpertsAreSpread) {
    const auto without = [](const std::string& lost) {
        return io::resolve(draft_of({{"model", "qwen3-30b-a3b/16"},
                                     {"train.layout", "ep4"},
                                     {"train.gpus", "8"},
                                     {"generate.layout", "dp8.ep4"},
                                     {"generate.gpus", "8"},
                                     {"lost", lost}}),
                           shipped_library());
    };
    EXPECT_EQ(without("9").value().cluster.losses().idle, (Numbers{8, 10, 11}));
    const auto refused = without("9,14");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().front().rule, "last-replica");
    EXPECT_EQ(refused.error().front().nearest->value, "14");
    // Experts are held twice, by trainers 1 and 5; all else by all.
    const auto experts = without("1,5,6");
    ASSERT_FALSE(experts);
    ASSERT_EQ(experts.error().size(), 1U);
    EXPECT_EQ(experts.error().front().nearest->value, "5-6");
    EXPECT_TRUE(without("5-6"));
}

TEST(Losses, RefuseAtOnceAllThatNobodyHoldsAnyMore) {
    const auto refused = dense_without("1,3,4,6-7,9-10");
    ASSERT_FALSE(refused);
    ASSERT_EQ(refused.error().size(), 3U);
    const auto& halves = refused.error()[0];
    EXPECT_EQ(halves.code, ErrorCode::kInfeasible);
    EXPECT_EQ(halves.rule, "no-holder-left");
    EXPECT_NE(halves.message.find("without ranks 1,3 nobody holds elements ["), std::string::npos)
        << halves.message;
    EXPECT_NE(halves.message.find("in pipeline stage 0; a checkpoint has them"), std::string::npos)
        << halves.message;
    EXPECT_NE(refused.error()[1].message.find("without ranks 4,6 nobody holds"), std::string::npos);
    EXPECT_NE(refused.error()[1].message.find("in pipeline stage 1"), std::string::npos);
    EXPECT_EQ(refused.error()[2].rule, "last-replica");
    for (const auto& fault : refused.error()) {
        ASSERT_TRUE(fault.nearest);
        EXPECT_EQ(fault.nearest->value, "3,6-7,10");
        EXPECT_EQ(fault.nearest->note, "once ranks 1,4,9 are back");
    }
    EXPECT_TRUE(dense_without("3,6-7,10"));
}

/// What all hold, such as norms, is gone only with all; then nothing can be left out but for one trainer of
/// each stage.
TEST(Losses, OfferNothingWhereNoneOfThemCanBeLeftOut) {
    const auto all = dense_without("0-3");
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().size(), 3U);  // Both halves, and what all four hold.
    EXPECT_EQ(all.error().front().nearest->value, "2-3");
    const auto single = io::resolve(draft_of({{"model", "qwen3-0.6b/16"},
                                              {"train.layout", "tp2"},
                                              {"train.gpus", "2"},
                                              {"generate.layout", "tp2"},
                                              {"generate.gpus", "2"},
                                              {"lost", "1"}}),
                                    shipped_library());
    ASSERT_FALSE(single);
    EXPECT_FALSE(single.error().front().nearest);
    EXPECT_NE(single.error().front().message.find("the refit can go on once rank 1 is back"),
              std::string::npos);
}

}  // namespace
}  // namespace refit
