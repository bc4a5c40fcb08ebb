// SPDX-License-Identifier: Apache-2.0
#include "refit/m2n_calls.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "m2n_cases.hpp"
#include "refit/m2n.hpp"

namespace refit {
namespace {

Scenario scenario_of(const std::string& model,
                     const std::string& train,
                     const std::string& generate,
                     const std::string& system = "h100-nvl8") {
    const auto library = shipped_library();
    io::ScenarioDraft draft;
    draft.apply({"model", model, ""});
    draft.apply({"train.layout", train, ""});
    draft.apply({"generate.layout", generate, ""});
    draft.apply({"system", system, ""});
    auto scenario = io::resolve(draft, library);
    if (!scenario) {
        throw std::runtime_error{scenario.error().front().message};
    }
    return std::move(*scenario);
}

/// The calls of a class whose name ends like this, in order of stages.
std::vector<M2nStageCalls> calls_named(const Scenario& scenario, const std::string& end) {
    const auto workload = Workload::make(scenario);
    auto calls = m2n_calls(scenario, workload);
    std::erase_if(calls, [&](const auto& one) {
        return !workload.classes()[one.parameter].parameter.name.ends_with(end);
    });
    return calls;
}

M2nStageCalls first_named(const Scenario& scenario, const std::string& end) {
    const auto calls = calls_named(scenario, end);
    return calls.empty() ? throw std::out_of_range{end} : calls.front();
}

TEST(M2nCalls, ExpertsAreStackedAndMoveByLayersOfEachStage) {
    // DeepSeek-V3: 58 MoE layers of 256 experts, 2048 x 7168 each. PP16 x EP16 on 256: 16 trainers a stage.
    const auto scenario = shipped_scenario("deepseek-v3-h100");
    const auto calls = calls_named(scenario, "experts.{expert}.gate_proj.weight");
    std::uint64_t layers = 0;
    std::set<std::uint32_t> stages;
    for (const auto& one : calls) {
        layers += one.calls;
        stages.insert(one.train_stage);
        ASSERT_TRUE(one.call);
        EXPECT_TRUE(one.refused.empty());
        EXPECT_TRUE(one.keeps_rank_order);
        EXPECT_EQ(one.call->communicator_ranks, 272U);
    }
    EXPECT_EQ(layers, 58U);
    EXPECT_EQ(stages.size(), 15U) << "stage 0 has the three dense layers only";
    const auto& call = *calls.front().call;
    EXPECT_EQ(call.source.shape, (m2n_cases::Shape{256, 2048, 7168}));
    EXPECT_EQ(call.source.element_bytes, 2U);
    // {1, 16} cut along experts, then {8, 32} cut along rows, from rank 16 on.
    EXPECT_EQ(normalised(call.source), (M2nSide{RankId{0}, 16, 1, 0, true}));
    EXPECT_EQ(normalised(call.destination), (M2nSide{RankId{16}, 32, 8, 1, true}));
    EXPECT_EQ(calls.front().settings.domain_size, 8U);
    EXPECT_EQ(calls.front().settings.path, M2nPath::kSplit);
    EXPECT_TRUE(m2n_plan(call, calls.front().settings));
}

TEST(M2nCalls, DenseTensorsAreReplicatedOverTheRestOfTheStage) {
    // Qwen3-32B, TP4 x PP4 x DP2 to TP4 x DP8: o_proj cut along dim 1, 2 x 4 trainers to 8 x 4 generators, 16
    // layers a stage.
    const auto scenario = scenario_of("qwen3-32b", "tp4.pp4@32", "tp4@32");
    const auto calls = calls_named(scenario, "o_proj.weight");
    ASSERT_EQ(calls.size(), 4U);
    EXPECT_EQ(calls[3].train_stage, 3U);
    EXPECT_EQ(calls[3].calls, 16U);
    EXPECT_EQ(normalised(calls[3].call->source), (M2nSide{RankId{0}, 4, 2, 1, true}));
    EXPECT_EQ(normalised(calls[3].call->destination), (M2nSide{RankId{8}, 4, 8, 1, true}));
    const auto norm = first_named(scenario, "input_layernorm.weight");
    EXPECT_EQ(norm.call->source.mesh.axes, std::vector<std::uint32_t>{8});
    EXPECT_EQ(norm.call->destination.mesh.axes, std::vector<std::uint32_t>{32});
    EXPECT_TRUE(normalised(norm.call->source).is_whole());
}

TEST(M2nCalls, GenerationStagesHaveCommunicatorsOfTheirOwn) {
    // TP2 x PP2 x DP2 on 8: stage 0 has ranks 0, 1, 4, 5 of the generators, numbered 2 to 5 behind two
    // trainers.
    const auto scenario = scenario_of("llama-3.1-8b", "tp2@2", "tp2.pp2@8");
    const auto calls = calls_named(scenario, "o_proj.weight");
    ASSERT_EQ(calls.size(), 2U);
    for (const auto& one : calls) {
        EXPECT_EQ(one.calls, 16U);
        EXPECT_EQ(one.call->communicator_ranks, 6U);
        EXPECT_EQ(normalised(one.call->destination), (M2nSide{RankId{2}, 2, 2, 1, true}));
    }
}

TEST(M2nCalls, DomainsDecideThePath) {
    // 4 trainers and 4 generators of Llama-3.1-8B: on one node, or the generators on the next.
    const auto scenario_with = [](const std::string& starts_new_domain) {
        const auto library = shipped_library();
        io::ScenarioDraft draft;
        for (const auto& [field, value] : {std::pair{"model", "llama-3.1-8b"},
                                           {"train.layout", "tp4@4"},
                                           {"generate.layout", "tp4@4"},
                                           {"system", "h100-nvl8"}}) {
            draft.apply({field, value, ""});
        }
        draft.apply({"placement.generation_starts_new_domain", starts_new_domain, ""});
        return io::resolve(draft, library).value();
    };
    EXPECT_EQ(first_named(scenario_with("false"), "o_proj.weight").settings.path, M2nPath::kLsa);
    const auto apart = first_named(scenario_with("true"), "o_proj.weight").settings;
    EXPECT_EQ(apart.path, M2nPath::kSplit);
    EXPECT_EQ(apart.domain_size, 4U) << "as many as there are on the node";
}

TEST(M2nCalls, DomainsAreTheLargestThatDivideEveryRun) {
    // 64 + 32 generators on GB200 racks of 64: runs of 64 and 32, so domains of 32.
    const auto calls =
        first_named(scenario_of("qwen3-32b", "tp4@8", "tp8@96", "gb200-nvl72"), "o_proj.weight");
    EXPECT_EQ(calls.settings.domain_size, 32U);
}

TEST(M2nCalls, QueriesOfSeveralGroupsAreNotOneBlock) {
    // Llama-3.1-8B has 8 KV groups; TP2 holds 4 of them a rank, each with its queries, keys and values
    // together.
    const auto scenario = scenario_of("llama-3.1-8b", "tp2@8", "tp8@8");
    const auto calls = first_named(scenario, "q_proj.weight");
    EXPECT_FALSE(calls.call);
    EXPECT_EQ(calls.refused,
              (std::vector{
                  M2nRefusal{M2nLimit::kStridedShards, M2nEnd::kSource, std::nullopt, std::nullopt, 4, 1}}));
    // One group a rank is one block.
    EXPECT_TRUE(first_named(scenario_of("llama-3.1-8b", "tp8@8", "tp8@8"), "q_proj.weight").refused.empty());
}

TEST(M2nCalls, SharedKeyValueHeadsLoseTheirRankOrder) {
    // Qwen3-30B-A3B has 4 KV heads. TP8 x DP2: heads lie on ranks 0 1, 2 3 ... of each engine, and replicas
    // on both.
    const auto scenario = scenario_of("qwen3-30b-a3b", "tp4@4", "tp8@16");
    const auto calls = first_named(scenario, "k_proj.weight");
    ASSERT_TRUE(calls.call);
    EXPECT_FALSE(calls.keeps_rank_order);
    EXPECT_EQ(normalised(calls.call->destination), (M2nSide{RankId{4}, 4, 4, 0, true}));
    // One engine alone has replicas as neighbours, which M2N can say.
    const auto one = first_named(scenario_of("qwen3-30b-a3b", "tp4@4", "tp8@8"), "k_proj.weight");
    EXPECT_TRUE(one.keeps_rank_order);
    EXPECT_EQ(normalised(one.call->destination), (M2nSide{RankId{4}, 4, 2, 0, false}));
}

TEST(M2nCalls, ExpertAndExpertTensorParallelismCutTwoAxes) {
    const auto calls = first_named(scenario_of("qwen3-30b-a3b", "ep4.etp2@8", "tp1.ep2@2"),
                                   "experts.{expert}.up_proj.weight");
    EXPECT_EQ(
        calls.refused,
        (std::vector{M2nRefusal{M2nLimit::kShardAxes, M2nEnd::kSource, std::nullopt, std::nullopt, 2, 1}}));
}

TEST(M2nCalls, PaddedVocabulariesLeaveUnequalParts) {
    // 151,936 rows at TP4 are padded to 152,064 = 297 x 512: parts of 38,016, and the last of 37,888, 128
    // fewer.
    const auto calls = first_named(scenario_of("qwen3-32b", "tp4@8", "tp1@8"), "embed_tokens.weight");
    EXPECT_EQ(calls.refused,
              (std::vector{M2nRefusal{
                  M2nLimit::kUnequalShards, M2nEnd::kSource, std::nullopt, std::nullopt, 128, 0}}));
    EXPECT_TRUE(
        first_named(scenario_of("qwen3-32b", "tp1@8", "tp1@8"), "embed_tokens.weight").refused.empty());
}

TEST(M2nCalls, MoreExpertShardsThanSourcesAreRefusedOutsideOneDomain) {
    const auto calls =
        first_named(scenario_of("qwen3-30b-a3b", "ep32@32", "tp8@8"), "experts.{expert}.up_proj.weight");
    EXPECT_EQ(calls.refused,
              (std::vector{M2nRefusal{M2nLimit::kSources, M2nEnd::kDestination, 0, std::nullopt, 32, 16}}));
}

TEST(M2nCalls, EveryLayerOfEveryClassIsCalledOnce) {
    for (const auto* name :
         {"deepseek-v3-h100", "kimi-k3-gb200", "nemotron-ultra-gb200", "qwen3-235b-h100"}) {
        const auto scenario = shipped_scenario(name);
        const auto workload = Workload::make(scenario);
        std::vector<std::uint64_t> called(workload.classes().size());
        for (const auto& one : m2n_calls(scenario, workload)) {
            called[one.parameter] += one.calls;
            if (one.call && one.refused.empty()) {
                EXPECT_TRUE(m2n_plan(*one.call, one.settings)) << name;
            }
        }
        for (std::size_t i = 0; i < called.size(); ++i) {
            std::uint64_t wanted = 0;
            for (const auto& slice : workload.classes()[i].slices) {
                wanted += slice.layers;
            }
            EXPECT_EQ(called[i], wanted) << name << ": " << workload.classes()[i].parameter.name;
        }
    }
}

TEST(M2nCalls, FaultsOfAScenarioAreGroupedByLimitAndNameTheirClasses) {
    const auto scenario = shipped_scenario("nemotron-ultra-gb200");
    const auto faults = m2n_scenario_faults(scenario, Workload::make(scenario));
    std::set<std::string> messages;
    for (const auto& fault : faults) {
        EXPECT_EQ(fault.code, ErrorCode::kInfeasible);
        EXPECT_NE(fault.message.find("[nccl-m2n@0.2]"), std::string::npos);
        EXPECT_TRUE(messages.insert(fault.message).second);
    }
    const auto sources = std::ranges::find(faults, "MAX_SOURCES", &Fault::rule);
    ASSERT_NE(sources, faults.end());
    EXPECT_EQ(sources->where, "backbone.layers.{layer}.mixer.experts.{expert}.up_proj.weight and 1 more");
    // The cure has the most expert shards that pass, and passes.
    ASSERT_TRUE(sources->nearest);
    EXPECT_EQ(sources->nearest->field, "train.layout");
    const auto cured = shipped_scenario("nemotron-ultra-gb200", {{"train.layout", sources->nearest->value}});
    EXPECT_EQ(cured.train.ep, 16U);
    const auto left = m2n_scenario_faults(cured, Workload::make(cured));
    EXPECT_EQ(std::ranges::count(left, "MAX_SOURCES", &Fault::rule), 0);
    EXPECT_EQ(left.size(), faults.size() - 1);
    const auto sound = shipped_scenario("deepseek-v3-h100");
    EXPECT_TRUE(m2n_scenario_faults(sound, Workload::make(sound)).empty());
}

}  // namespace
}  // namespace refit
