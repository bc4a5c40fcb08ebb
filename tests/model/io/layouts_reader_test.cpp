// SPDX-License-Identifier: Apache-2.0
// Layouts, GPU counts, pipelines and memory, as a whole draft is resolved.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "mendable.hpp"

namespace refit::io {
namespace {

using testing_io::count_rule;
using testing_io::deepseek;
using testing_io::described;
using testing_io::expect_mendable;
using testing_io::faults_of;
using testing_io::Fields;
using testing_io::mentions;
using testing_io::resolved;
using testing_io::set_all;

TEST(Resolve, OffersTheFewestGpusOnWhichALayoutMultipliesOut) {
    struct Case {
        const char* side;
        const char* layout;
        const char* gpus;
    };
    // Train: the least common multiple of tp·cp·dp and ep·etp, for each stage. Generate: that of tp·dp and
    // ep.
    for (const auto& [side, layout, gpus] : {Case{"train", "tp4.pp2.ep2.etp1", "8"},
                                             Case{"train", "tp2.cp2.pp1.ep8", "8"},
                                             Case{"train", "tp4.etp2.ep64", "128"},
                                             Case{"train", "tp4.dp4.ep4", "16"},
                                             Case{"train", "ep4.fsdp8.dp2", "64"},
                                             Case{"generate", "tp4.dp2", "8"},
                                             Case{"generate", "tp4.ep16", "16"},
                                             Case{"generate", "tp4.pp2.ep4", "8"}}) {
        auto draft = deepseek({{std::string{side} + ".layout", layout}, {"model", "qwen3-30b-a3b"}, {"generate.layout", "tp4"}});
        set_all(draft, {{std::string{side} + ".layout", layout}}, Precedence::kFile);
        draft.erase("train.pipeline.first");
        draft.erase("train.pipeline.last");
        draft.erase(std::string{side} + ".gpus");
        const auto faults = faults_of(draft);
        ASSERT_EQ(faults.size(), 1U) << layout << "\n" << described(faults);
        EXPECT_EQ(faults[0].nearest.value().value, gpus) << layout;
        expect_mendable(draft);
    }
}

TEST(Resolve, OffersGpusThatBothDenseAndExpertRanksDivide) {
    // Kimi-K2 has 64 heads and 384 experts: tp4 and ep6 need 12 GPUs, neither 4 nor 6.
    auto draft = deepseek({{"model", "kimi-k2"}, {"train.layout", "tp4.pp10.ep6"}, {"generate.layout", "tp64.dp4"}});
    for (const auto* name : {"train.gpus", "train.pipeline.first", "train.pipeline.last"}) {
        draft.erase(name);
    }
    const auto faults = faults_of(draft);
    ASSERT_EQ(faults.size(), 1U) << described(faults);
    EXPECT_EQ(faults[0].nearest.value().value, "120");
    expect_mendable(draft);
}

TEST(ResolvePlacement, TakesExpertsInTurnWhereVllmDoes) {
    const auto placement = [](const Fields& fields) { return resolved(deepseek(fields)).generate.expert_placement; };
    const Fields in_turn{{"generate.expert_placement", "round_robin"}, {"generate.layout", "tp16.dp16.ep256"}};
    EXPECT_EQ(placement(in_turn), ExpertPlacement::kRoundRobin);
    EXPECT_EQ(placement({{"generate.layout", "tp16.dp16.ep256"}}), ExpertPlacement::kLinear);
    // Without EP there is nothing to place.
    EXPECT_EQ(placement({{"generate.expert_placement", "round_robin"}}), ExpertPlacement::kLinear);
    // Qwen3's router knows no groups.
    auto draft = deepseek({{"generate.expert_placement", "round_robin"},
                           {"model", "qwen3-235b-a22b"},
                           {"train.layout", "tp4.pp8:11:11.ep16"},
                           {"generate.layout", "tp8.dp32.ep128"}});
    EXPECT_EQ(resolved(draft).generate.expert_placement, ExpertPlacement::kLinear);
    draft = deepseek({{"generate.expert_placement", "roundrobin"}});
    EXPECT_EQ(faults_of(draft)[0].nearest.value().value, "round_robin");
    expect_mendable(draft);
}

TEST(ResolveMemory, RefusesLayoutsThatHaveNoRoomForTheWeights) {
    const auto draft = deepseek({{"generate.layout", "tp4.dp64"}});
    const auto faults = faults_of(draft);
    ASSERT_EQ(faults.size(), 1U) << described(faults);
    EXPECT_EQ(faults[0].rule, "gpu-memory");
    EXPECT_EQ(faults[0].code, ErrorCode::kInfeasible);
    EXPECT_TRUE(mentions(faults, "generate.layout = tp4.dp64: generator 0 would hold 33")) << described(faults);
    EXPECT_TRUE(mentions(faults, "of weights, and its H100 has 85 GB of memory")) << described(faults);
    EXPECT_EQ(faults[0].nearest.value().field, "generate.layout");
    expect_mendable(draft);
}

TEST(ResolveMemory, OffersMoreGpusWhereNoLayoutHasRoom) {
    // 1.34 TB need 16 GPUs of 85 GB at least.
    auto draft = deepseek({{"train.gpus", "1"}, {"train.layout", "tp1"}, {"generate.layout", "tp1@1"}});
    for (const auto* name : {"train.pipeline.first", "train.pipeline.last", "generate.gpus"}) {
        draft.erase(name);
    }
    const auto faults = faults_of(draft);
    EXPECT_EQ(count_rule(faults, "gpu-memory"), 4U) << described(faults);
    EXPECT_TRUE(mentions(faults, "train.gpus = 1: no layout on so few has room for the weights")) << described(faults);
    EXPECT_EQ(faults[1].nearest.value(), (Suggestion{"train.gpus", "32", faults[1].nearest->note}));
    // Where the layout has the count, the one that is offered has it too.
    EXPECT_EQ(faults[2].nearest.value().field, "generate.layout");
    EXPECT_TRUE(faults[2].nearest.value().value.ends_with("@32")) << described(faults);
    EXPECT_EQ(faults[3].nearest, faults[2].nearest);
    expect_mendable(draft);
}

TEST(ResolveMemory, OffersACountWithRoomWhereNoneIsGiven) {
    ScenarioDraft draft;
    set_all(draft, {{"model", "deepseek-v3"}, {"system", "h100-nvl8"}}, Precedence::kFlag);
    const auto faults = faults_of(draft);
    EXPECT_EQ(count_rule(faults, "missing-field"), 2U) << described(faults);
    for (const auto& fault : faults) {
        EXPECT_NE(fault.nearest.value().value, "1") << described(faults);
    }
    expect_mendable(draft);
}

TEST(ResolveMemory, CountsTheDtypeAndTheSystemOfTheSide) {
    // 1.34 TB over 32 are 44 GB with what is replicated, and 88 GB in FP32: too much for 85, not for 150.
    EXPECT_EQ(count_rule(faults_of(deepseek({{"dtype", "fp32"}})), "gpu-memory"), 1U);
    EXPECT_TRUE(faults_of(deepseek({{"dtype", "fp32"}, {"system.generate", "h200-nvl8"}})).empty());
}

TEST(ResolveLayout, LetsAFlagOverrideAFile) {
    auto draft = deepseek();
    set_all(draft, {{"train.layout", "tp8.pp4.ep8"}}, Precedence::kFlag);
    set_all(draft, {{"train.layout", "tp2"}}, Precedence::kEnvironment);
    const auto scenario = resolved(draft);
    EXPECT_EQ(scenario.train.tp, 8U);
    EXPECT_EQ(scenario.train.gpus, 256U);
}

TEST(ResolveLayout, LeavesOutPipelineEndsThatALaterLayoutMadeImpossible) {
    // 61 layers less 3 + 2 do not divide over the other two of four stages, but over the other 14 of 16 (4
    // each) and 6 of 8 they do not either: 56 / 6.
    auto draft = deepseek();
    set_all(draft, {{"train.layout", "pp8.ep16"}}, Precedence::kFlag);
    EXPECT_EQ(resolved(draft).train.stage_layers, (std::vector<std::uint32_t>{8, 8, 8, 8, 8, 7, 7, 7}));
    // Of the same file they stay, and are refused.
    EXPECT_EQ(count_rule(faults_of(deepseek({{"train.layout", "pp8.ep16"}})), "pipeline-split"), 1U);
}

TEST(ResolveLayout, KeepsPipelineEndsThatStillFit) {
    // 56 layers over two stages.
    auto draft = deepseek();
    set_all(draft, {{"train.layout", "pp4.ep16"}}, Precedence::kFlag);
    EXPECT_EQ(resolved(draft).train.stage_layers, (std::vector<std::uint32_t>{3, 28, 28, 2}));
}

TEST(ResolveLayout, CountsTheEmbeddingOrTheLossAsALayer) {
    // 61 layers and one table are 31 a stage; the stage with the table has one layer less.
    auto draft = deepseek({{"train.layout", "pp2.ep16"}, {"train.account_for_embedding", "true"}});
    draft.erase("train.pipeline.first");
    draft.erase("train.pipeline.last");
    EXPECT_EQ(resolved(draft).train.stage_layers, (std::vector<std::uint32_t>{30, 31}));
    set_all(draft, {{"train.account_for_embedding", "false"}, {"train.account_for_loss", "true"}}, Precedence::kFlag);
    EXPECT_EQ(resolved(draft).train.stage_layers, (std::vector<std::uint32_t>{31, 30}));
    // 63 do not divide in two.
    set_all(draft, {{"train.account_for_embedding", "true"}}, Precedence::kFlag);
    EXPECT_EQ(count_rule(faults_of(draft), "pipeline-split"), 2U);
    expect_mendable(draft);
}

TEST(ResolveLayout, RefusesToCountTablesBesideEndsThatAreSet) {
    const auto draft = deepseek({{"train.account_for_embedding", "true"}});
    EXPECT_EQ(count_rule(faults_of(draft), "pipeline-split"), 1U);
    expect_mendable(draft);
}

TEST(ResolveLayout, PrefersEndsWithinTheLayout) {
    EXPECT_EQ(resolved(deepseek({{"train.layout", "pp4:15:16.ep16"}})).train.stage_layers,
              (std::vector<std::uint32_t>{15, 15, 15, 16}));
}

TEST(ResolveLayout, ReadsTheGpuCountBehindAnAt) {
    auto draft = deepseek({{"generate.layout", "tp32@512"}});
    draft.erase("generate.gpus");
    EXPECT_EQ(resolved(draft).generate.dp, 16U);
    // A file's count gives way to a flag's layout, and the other way round.
    draft = deepseek();
    set_all(draft, {{"generate.layout", "tp32@512"}}, Precedence::kFlag);
    EXPECT_EQ(resolved(draft).generate.gpus, 512U);
    draft = deepseek({{"generate.layout", "tp32@512"}});
    set_all(draft, {{"generate.gpus", "64"}}, Precedence::kFlag);
    EXPECT_EQ(resolved(draft).generate.gpus, 64U);
    // Both may say the same.
    EXPECT_EQ(resolved(deepseek({{"generate.layout", "tp32@256"}})).generate.gpus, 256U);
}

TEST(ResolveLayout, RefusesTwoGpuCountsFromOnePlace) {
    const auto draft = deepseek({{"generate.layout", "tp32@512"}});
    const auto faults = faults_of(draft);
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].rule, "gpus-twice");
    EXPECT_EQ(faults[0].message, "generate.gpus is 256, but the layout says @512");
    EXPECT_EQ(faults[0].nearest.value(), (Suggestion{"generate.gpus", "512", ""}));
    expect_mendable(draft);
}

TEST(ResolveLayout, SuggestsLayoutsWithTheGpuCountThatTheyHad) {
    auto draft = deepseek({{"train.layout", "tp3.pp16:3:2.ep16@256"}, {"generate.layout", "tp24@256"}});
    for (const auto* name : {"train.gpus", "generate.gpus", "train.pipeline.first", "train.pipeline.last"}) {
        draft.erase(name);
    }
    EXPECT_EQ(faults_of(draft).front().nearest.value().value, "tp4.pp16:3:2.ep16@256");
    expect_mendable(draft);
    // A count that is overridden is not taken up again.
    set_all(draft, {{"train.gpus", "512"}}, Precedence::kFlag);
    EXPECT_EQ(faults_of(draft).front().nearest.value().value, "tp4.pp16:3:2.ep16");
    expect_mendable(draft);
}

TEST(ResolveLayout, KeepsTheGpuCountBehindALayoutThatCannotBeRead) {
    auto draft = deepseek({{"generate.layout", "tpp32@512"}});
    draft.erase("generate.gpus");
    const auto faults = faults_of(draft);
    ASSERT_EQ(faults.size(), 1U) << described(faults);
    EXPECT_EQ(faults[0].nearest.value().value, "dp512.ep32@512");
    expect_mendable(draft);
}

TEST(ResolveEngine, FollowsFromTheLayout) {
    auto draft = deepseek();
    set_all(draft, {{"train.layout", "ep32.fsdp8"}}, Precedence::kFlag);
    const auto scenario = resolved(draft);
    EXPECT_EQ(describe(scenario.train), "EP32 x FSDP8");
    EXPECT_EQ(scenario.train.stage_layers, (std::vector<std::uint32_t>{61}));
    EXPECT_EQ(scenario.facts.at("train.engine"), "fsdp");
    EXPECT_EQ(resolved(deepseek()).facts.at("train.engine"), "megatron");
    // A file's word for the engine gives way to a flag's layout.
    set_all(draft, {{"train.engine", "megatron"}}, Precedence::kFile);
    EXPECT_EQ(resolved(draft).facts.at("train.engine"), "fsdp");
}

TEST(ResolveEngine, ShardsOverAllTrainersWhereALaterWordOrNoLayoutSaysOnlyFsdp) {
    auto draft = deepseek();
    set_all(draft, {{"train.engine", "fsdp"}}, Precedence::kFlag);
    EXPECT_EQ(describe(resolved(draft).train), "FSDP256");
    draft = deepseek({{"train.engine", "fsdp"}});
    draft.erase("train.layout");
    draft.erase("train.pipeline.first");
    draft.erase("train.pipeline.last");
    EXPECT_EQ(describe(resolved(draft).train), "FSDP256");
    // And back to Megatron: 671 B parameters do not fit into one GPU, but the engine is taken at its word.
    draft = deepseek({{"train.layout", "ep32.fsdp8"}});
    set_all(draft, {{"train.engine", "megatron"}, {"model", "qwen3-4b"}, {"generate.layout", "tp8"}}, Precedence::kFlag);
    draft.erase("train.pipeline.first");
    draft.erase("train.pipeline.last");
    EXPECT_FALSE(resolved(draft).train.is_fsdp());
}

TEST(ResolveEngine, RefusesAnEngineBesideALayoutOfTheOther) {
    auto draft = deepseek({{"train.engine", "fsdp"}});
    draft.erase("train.pipeline.first");
    draft.erase("train.pipeline.last");
    auto faults = faults_of(draft);
    ASSERT_EQ(faults.size(), 1U) << described(faults);
    EXPECT_EQ(faults[0].message, "train.engine = fsdp, but the layout pp16.ep16 is one of Megatron");
    EXPECT_EQ(faults[0].nearest.value().value, "fsdp256");
    expect_mendable(draft);
    // An engine that nobody knows gives way to the layout's, though its name is like the other's.
    draft = deepseek({{"train.engine", "ddp"}});
    EXPECT_EQ(faults_of(draft).at(0).nearest.value(), (Suggestion{"train.engine", "megatron", ""}));
    expect_mendable(draft);
    draft = deepseek({{"train.engine", "megatron"}, {"train.layout", "ep32.fsdp8@256"}});
    for (const auto* name : {"train.gpus", "train.pipeline.first", "train.pipeline.last"}) {
        draft.erase(name);
    }
    faults = faults_of(draft);
    ASSERT_EQ(faults.size(), 1U) << described(faults);
    EXPECT_EQ(faults[0].nearest.value(), (Suggestion{"train.engine", "fsdp", ""}));
    expect_mendable(draft);
}

TEST(ResolveLayout, MendsPipelinesThatFlagsMadeImpossible) {
    auto draft = deepseek();
    set_all(draft,
            {{"train.layout", "tp3.pp16.ep16"}, {"train.pipeline.first", "4"}, {"train.pipeline.last", "x"}},
            Precedence::kFlag);
    expect_mendable(draft);
}

}  // namespace
}  // namespace refit::io
