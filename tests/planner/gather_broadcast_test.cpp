// SPDX-License-Identifier: Apache-2.0
// Variants of gather-broadcast, and of the order of point-to-point transfers.
#include <algorithm>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/check.hpp"
#include "refit/methods.hpp"
#include "refit/traffic.hpp"

namespace refit {
namespace {

using Changes = std::initializer_list<std::pair<std::string, std::string>>;

constexpr std::uint64_t kPayload =
    1'342'052'868'096;  // 671,026,419,200 parameters, a few in FP32 (estimate_test.cpp)
constexpr std::uint64_t kExperts = 1'307'817'541'632;  // 58 layers x 256 x 3 x 2048 x 7168 x 2 B
constexpr std::uint64_t kExpertLayer = kExperts / 58;

struct Planned {
    Scenario scenario;
    Workload workload;
    Plan plan;

    [[nodiscard]] const PlanStage& stage(StageKind kind) const {
        return *std::ranges::find(plan.stages, kind, &PlanStage::kind);
    }
    [[nodiscard]] std::vector<PortBytes> ports(StageKind kind) const {
        const auto moved = collective_traffic(plan, stage(kind), scenario.cluster);
        return moved.ports();
    }
};

Planned planned(Method method, const std::string& name, Changes changes) {
    auto scenario = shipped_scenario(name, changes);
    auto workload = Workload::make(scenario);
    auto plan = make_plan(method, scenario, workload).value();
    return {std::move(scenario), std::move(workload), std::move(plan)};
}

std::string faults_of(const Planned& planned) {
    std::string text;
    for (const auto& fault : check_plan(planned.plan, planned.workload, planned.scenario.cluster)) {
        text += fault.rule + ": " + fault.message + "\n";
    }
    return text;
}

/// Bytes of the full parameters that begin on each pipeline stage.
std::vector<std::uint64_t> stage_bytes(const Workload& workload) {
    std::vector<std::uint64_t> bytes(workload.train_stages(), 0);
    for (const auto& entry : workload.classes()) {
        for (const auto& slice : entry.slices) {
            bytes[slice.train_stage] += slice.is_copy ? 0
                                                      : Box::whole(entry.source.shape()).volume() *
                                                            entry.element_bytes() * slice.layers;
        }
    }
    return bytes;
}

TEST(GatherBroadcast, ALoneTrainer0SendsEverythingThroughItsOwnNic) {
    // 32 domains of 8 generators; the ring enters each once, at its first member, and leaves all but the last
    // from it.
    const auto made = planned(
        Method::kGatherBroadcast, "deepseek-v3-h100", {{"engine.options.broadcast_group", "generators"}});
    EXPECT_EQ(faults_of(made), "");
    const auto ports = made.ports(StageKind::kBroadcast);
    for (std::uint32_t rank = 0; rank < 512; ++rank) {
        const bool is_entry = rank >= 256 && rank % 8 == 0;
        EXPECT_EQ(ports[rank].nic_in, is_entry ? kPayload : 0) << rank;
        EXPECT_EQ(ports[rank].nic_out, rank == 0 || (is_entry && rank < 504) ? kPayload : 0) << rank;
    }
}

TEST(GatherBroadcast, EachStageSendsItsOwnParametersThroughOneNic) {
    const auto made = planned(Method::kGatherBroadcast,
                              "deepseek-v3-h100",
                              {{"engine.options.broadcast_root", "each-pp-stage"},
                               {"engine.options.broadcast_group", "generators"}});
    EXPECT_EQ(faults_of(made), "");
    const auto bytes = stage_bytes(made.workload);
    EXPECT_EQ(std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0}), kPayload);
    const auto ports = made.ports(StageKind::kBroadcast);
    for (std::uint32_t rank = 0; rank < 256; ++rank) {
        EXPECT_EQ(ports[rank].nic_out, rank % 16 == 0 ? bytes[rank / 16] : 0) << rank;
        EXPECT_EQ(ports[rank].nic_in, 0U) << rank;
    }
    // Sixteen roots enter each domain of eight at members of their own: stages j and j + 8 at member j.
    for (std::uint32_t rank = 256; rank < 512; ++rank) {
        const auto entered = bytes[rank % 8] + bytes[rank % 8 + 8];
        EXPECT_EQ(ports[rank].nic_in, entered) << rank;
        EXPECT_EQ(ports[rank].nic_out, rank < 504 ? entered : 0) << rank;
    }
}

TEST(GatherBroadcast, EachStageGathersItsOwnExpertsAndNothingGoesFromStageToStage) {
    // A stage of four MoE layers gathers 4/58 of the experts over 16 ranks in two domains. Its ring of eight
    // channels crosses twice, so each of its NICs sends (4/58 E - 1/16 of that) / 8: a sixteenth of what
    // trainer 0's way costs.
    const auto made = planned(
        Method::kGatherBroadcast, "deepseek-v3-h100", {{"engine.options.broadcast_root", "each-pp-stage"}});
    EXPECT_EQ(faults_of(made), "");
    const auto& gather = made.stage(StageKind::kGather);
    EXPECT_TRUE(std::ranges::none_of(gather.collectives, [](const auto& entry) {
        return entry.role == CollectiveRole::kPipelineBroadcast;
    }));
    const auto ports = made.ports(StageKind::kGather);
    const auto own = 4 * kExpertLayer;
    for (std::uint32_t rank = 16; rank < 240; ++rank) {
        EXPECT_EQ(ports[rank].nic_out, (own - own / 16) / 8) << rank;
    }
    // Calls of the busiest stage: 4 layers x 3 projections x 16 local experts. Stages 0 (dense) gathers none.
    ASSERT_EQ(gather.collectives.size(), 1U);
    EXPECT_EQ(gather.collectives[0].calls, 4U * 3 * 16);
    EXPECT_EQ(ports[0].nic_out, 0U);
}

TEST(GatherBroadcast, InOneGroupOfAllEachStagesBytesGoOverEightNics) {
    // 64 domains of 8: every ring crosses 63 times over 8 channels, so a NIC sends an eighth of each stage's
    // bytes, shares rounded; only the last domain of all rings sends nothing.
    const auto made = planned(
        Method::kGatherBroadcast, "deepseek-v3-h100", {{"engine.options.broadcast_root", "each-pp-stage"}});
    const auto ports = made.ports(StageKind::kBroadcast);
    std::uint64_t eighth = 0;
    for (const auto bytes : stage_bytes(made.workload)) {
        eighth += bytes / 8;
    }
    for (std::uint32_t rank = 0; rank < 512; ++rank) {
        EXPECT_NEAR(
            static_cast<double>(ports[rank].nic_out), rank < 504 ? static_cast<double>(eighth) : 0.0, 16.0)
            << rank;
    }
}

TEST(GatherBroadcast, EightSendersTakeTurnsWithThePacks) {
    const auto made = planned(
        Method::kGatherBroadcast,
        "deepseek-v3-h100",
        {{"engine.options.broadcast_senders", "8"}, {"engine.options.broadcast_group", "generators"}});
    EXPECT_EQ(faults_of(made), "");
    const auto ports = made.ports(StageKind::kBroadcast);
    std::uint64_t sum = 0;
    for (std::uint32_t rank = 0; rank < 8; ++rank) {
        sum += ports[rank].nic_out;
        // About 780 packs of 1.70 GB: every root has 97 or 98, so within two packs of an eighth.
        EXPECT_NEAR(static_cast<double>(ports[rank].nic_out), kPayload / 8.0, 3.5e9) << rank;
        for (std::uint32_t domain = 256; domain < 512; domain += 8) {
            EXPECT_EQ(ports[domain + rank].nic_in, ports[rank].nic_out);
        }
    }
    EXPECT_EQ(sum, kPayload);
    EXPECT_EQ(ports[8].nic_out, 0U);
}

TEST(GatherBroadcast, EveryVariantDeliversEveryElementOnce) {
    for (const auto* name : {"deepseek-v3-h100", "qwen3-235b-h100", "nemotron-ultra-gb200"}) {
        for (const auto* root : {"trainer-0", "each-pp-stage"}) {
            for (const auto* group : {"all", "generators"}) {
                for (const auto* senders : {"1", "3"}) {
                    for (const auto method : {Method::kGatherBroadcast, Method::kHybrid}) {
                        const auto made = planned(method,
                                                  name,
                                                  {{"engine.options.broadcast_root", root},
                                                   {"engine.options.broadcast_group", group},
                                                   {"engine.options.broadcast_senders", senders}});
                        EXPECT_EQ(faults_of(made), "")
                            << name << " " << root << " " << group << " " << senders;
                    }
                }
            }
        }
    }
}

TEST(GatherBroadcast, AQuarterOfAMillionTensorsAreDealtAndDelivered) {
    const auto made = planned(
        Method::kGatherBroadcast,
        "kimi-k3-h100",
        {{"engine.options.broadcast_root", "each-pp-stage"}, {"engine.options.broadcast_senders", "3"}});
    EXPECT_EQ(faults_of(made), "");
}

TEST(GatherBroadcast, ATiedHeadComesWithItsEmbedding) {
    // Qwen3-4B's embedding is its head: with PP2 generators it goes to both stages, its bytes counted once.
    for (const auto* senders : {"1", "2"}) {
        const auto library = shipped_library();
        io::ScenarioDraft draft;
        for (const auto& [field, value] : Changes{{"model", "qwen3-4b"},
                                                  {"train.layout", "tp2.pp2@8"},
                                                  {"generate.layout", "tp2.pp2@4"},
                                                  {"system", "h100-nvl8"},
                                                  {"engine.options.broadcast_root", "each-pp-stage"},
                                                  {"engine.options.broadcast_senders", senders}}) {
            draft.apply({field, value, ""});
        }
        auto scenario = io::resolve(draft, library).value();
        auto workload = Workload::make(scenario);
        auto plan = make_plan(Method::kGatherBroadcast, scenario, workload).value();
        EXPECT_EQ(faults_of({std::move(scenario), std::move(workload), std::move(plan)}), "");
    }
}

TEST(GatherBroadcast, TheCheckerMissesNothingOfADealtBroadcast) {
    const auto good = planned(Method::kGatherBroadcast,
                              "qwen3-235b-h100",
                              {{"engine.options.broadcast_root", "each-pp-stage"},
                               {"engine.options.broadcast_group", "generators"},
                               {"engine.options.broadcast_senders", "2"}});
    const auto faults = [&](const std::function<void(PlanStage&, Plan&)>& spoil) {
        auto bad = good;
        spoil(*std::ranges::find(bad.plan.stages, StageKind::kBroadcast, &PlanStage::kind), bad.plan);
        return faults_of(bad);
    };
    EXPECT_EQ(faults([](PlanStage&, Plan&) {}), "");
    EXPECT_NE(faults([](PlanStage& stage, Plan&) { stage.collectives[0].parts.pop_back(); }).find("missing"),
              std::string::npos);
    EXPECT_NE(faults([](PlanStage& stage, Plan&) {
                  stage.collectives[0].parts.push_back(stage.collectives[0].parts.back());
              }).find("repeated"),
              std::string::npos);
    // All parts gone means all tensors, of which this root has but its own stage's.
    EXPECT_NE(faults([](PlanStage& stage, Plan&) { stage.collectives[0].parts.clear(); }).find("source"),
              std::string::npos);
    // The first root of another stage has not gathered these tensors.
    EXPECT_NE(faults([](PlanStage& stage, Plan& plan) {
                  std::swap(plan.groups[stage.collectives.front().groups][0][0],
                            plan.groups[stage.collectives.back().groups][0][0]);
              }).find("has not gathered all of it"),
              std::string::npos);
    EXPECT_NE(
        faults([](PlanStage& stage, Plan&) { stage.collectives[0].bytes[0] += 2; }).find("collective-bytes"),
        std::string::npos);
    EXPECT_NE(faults([](PlanStage& stage, Plan&) {
                  stage.collectives[0].parts[0].tensors = 99;
              }).find("part-tensors"),
              std::string::npos);
    EXPECT_NE(faults([](PlanStage& stage, Plan&) {
                  stage.collectives[0].parameters.erase(stage.collectives[0].parameters.begin());
              }).find("collective-parts"),
              std::string::npos);
    EXPECT_NE(faults([](PlanStage& stage, Plan& plan) {
                  plan.stages.front().collectives.front().parts = {stage.collectives[0].parts[0]};
              }).find("collective-parts"),
              std::string::npos);
}

TEST(GatherBroadcast, RefusesMoreSendersThanThereAreRanks) {
    const auto scenario = shipped_scenario(
        "deepseek-v3-h100",
        {{"engine.options.broadcast_senders", "17"}, {"engine.options.broadcast_root", "each-pp-stage"}});
    const auto plan = make_plan(Method::kGatherBroadcast, scenario, Workload::make(scenario));
    ASSERT_FALSE(plan.has_value());
    EXPECT_EQ(plan.error()[0].rule, "broadcast-senders");
    EXPECT_EQ(plan.error()[0].nearest->value, "16");
}

TEST(GatherBroadcast, TheDefaultsAreTrainer0AndEverybody) {
    const auto plain = planned(Method::kGatherBroadcast, "deepseek-v3-h100", {});
    const auto said = planned(Method::kGatherBroadcast,
                              "deepseek-v3-h100",
                              {{"engine.options.broadcast_root", "trainer-0"},
                               {"engine.options.broadcast_group", "all"},
                               {"engine.options.broadcast_senders", "1"},
                               {"engine.options.transfer_order", "by-tensor"},
                               {"engine.options.shadow_copy", "false"}});
    EXPECT_EQ(plain.plan, said.plan);
    EXPECT_TRUE(plain.plan.stages.back().collectives.front().parts.empty());
}

TEST(TransferOrder, RoundsMoveTheSameBytesInAnotherOrder) {
    const auto plain = planned(Method::kDirect, "deepseek-v3-h100", {});
    const auto rounds =
        planned(Method::kDirect, "deepseek-v3-h100", {{"engine.options.transfer_order", "rounds"}});
    EXPECT_EQ(faults_of(rounds), "");
    const auto before = traffic(plain.plan, plain.scenario.cluster);
    const auto after = traffic(rounds.plan, rounds.scenario.cluster);
    EXPECT_EQ(before.ports(), after.ports());
    ASSERT_EQ(plain.plan.blocks.size(), rounds.plan.blocks.size());
    EXPECT_NE(plain.plan.blocks, rounds.plan.blocks);
    // An expert projection: each of 16 trainers owes each of 256 generators a piece. In the first round all
    // 16 send, to 16 different generators.
    for (const auto& block : rounds.plan.blocks) {
        if (rounds.workload.classes()[block.parameter].parameter.is_expert()) {
            ASSERT_EQ(block.size(), 16U * 256);
            for (std::size_t round = 0; round < block.size(); round += 16) {
                auto to = std::vector(block.destination.begin() + static_cast<std::ptrdiff_t>(round),
                                      block.destination.begin() + static_cast<std::ptrdiff_t>(round) + 16);
                std::ranges::sort(to);
                EXPECT_EQ(std::ranges::adjacent_find(to), to.end());
            }
        }
    }
}

TEST(CoveragePattern, TakesTheBulkPathByName) {
    const auto named = planned(Method::kHybrid, "deepseek-v3-h100", {{"engine.coverage", "nemo-rl-names"}});
    const auto globbed =
        planned(Method::kHybrid, "deepseek-v3-h100", {{"engine.coverage", "pattern:*.mlp.experts.*"}});
    EXPECT_EQ(faults_of(globbed), "");
    EXPECT_EQ(name_of(globbed.plan.coverage), "pattern:*.mlp.experts.*");
    // Only the dense MLPs of three layers are left: 3 x 3 x 18,432 x 7168 x 2 B, gathered instead.
    EXPECT_EQ(globbed.stage(StageKind::kBroadcast).payload - named.stage(StageKind::kBroadcast).payload,
              Bytes{std::uint64_t{3} * 3 * 18'432 * 7168 * 2});
}

TEST(CoveragePattern, ThatMatchesNothingIsRefused) {
    const auto scenario = shipped_scenario("deepseek-v3-h100", {{"engine.coverage", "pattern:*.w1"}});
    const auto plan = make_plan(Method::kHybrid, scenario, Workload::make(scenario));
    ASSERT_FALSE(plan.has_value());
    EXPECT_EQ(plan.error()[0].rule, "no-bulk-parameter");
}

TEST(GatherBroadcast, TrainersOfTheRootsDomainMayTakePartAlone) {
    const auto job = planned(
        Method::kGatherBroadcast, "deepseek-v3-h100", {{"engine.options.broadcast_group", "root-domain"}});
    EXPECT_EQ(faults_of(job), "");
    const auto& broadcast = job.stage(StageKind::kBroadcast).collectives.front();
    const auto& group = job.plan.groups[broadcast.groups].front();
    ASSERT_EQ(group.size(), 8U + 256U);
    for (std::uint32_t i = 0; i < 8; ++i) {
        EXPECT_EQ(group[i], RankId{i});
    }
    EXPECT_EQ(group[8], RankId{256});
}

TEST(GatherBroadcast, EachGeneratorMayGetEverythingFromATrainerOfItsOwn) {
    const auto job =
        planned(Method::kGatherBroadcast, "deepseek-v3-h100", {{"engine.options.broadcast_group", "pairs"}});
    EXPECT_EQ(faults_of(job), "");
    const auto& broadcast = job.stage(StageKind::kBroadcast).collectives.front();
    const auto& groups = job.plan.groups[broadcast.groups];
    ASSERT_EQ(groups.size(), 256U);
    EXPECT_EQ(groups[7], (std::vector<RankId>{RankId{7}, RankId{256 + 7}}));
    const auto ports = job.ports(StageKind::kBroadcast);
    for (std::uint32_t rank = 0; rank < 256; ++rank) {
        EXPECT_EQ(ports[rank].nic_out, kPayload) << rank;
        EXPECT_EQ(ports[256 + rank].nic_in, kPayload) << rank;
    }
}

TEST(GatherBroadcast, PairsNeedATrainerForEachGenerator) {
    const auto fault_of = [](Changes changes) {
        const auto scenario = shipped_scenario("deepseek-v3-h100", changes);
        const auto plan = make_plan(Method::kGatherBroadcast, scenario, Workload::make(scenario));
        return plan ? Faults{} : plan.error();
    };
    const auto few = fault_of({{"engine.options.broadcast_group", "pairs"}, {"generate.gpus", "512"}});
    ASSERT_EQ(few.size(), 1U);
    EXPECT_NE(few[0].message.find("512 generators, but only 256 trainers"), std::string::npos) << few[0].message;
    EXPECT_EQ(few[0].nearest->value, "all");
    const auto stages = fault_of(
        {{"engine.options.broadcast_group", "pairs"}, {"engine.options.broadcast_root", "each-pp-stage"}});
    ASSERT_EQ(stages.size(), 1U);
    EXPECT_EQ(stages[0].nearest->value, "trainer-0");
}

TEST(DirectSource, GatheredIsTheGatherOfABroadcastAndTheTransfersOfShards) {
    for (const auto* root : {"trainer-0", "each-pp-stage"}) {
        const auto gathered =
            planned(Method::kDirect,
                    "deepseek-v3-h100",
                    {{"engine.options.direct_source", "gathered"}, {"engine.options.broadcast_root", root}});
        EXPECT_EQ(faults_of(gathered), "");
        const auto shards = planned(Method::kDirect, "deepseek-v3-h100", {});
        const auto broadcast =
            planned(Method::kGatherBroadcast, "deepseek-v3-h100", {{"engine.options.broadcast_root", root}});
        ASSERT_EQ(gathered.plan.stages.size(), shards.plan.stages.size() + 1);
        EXPECT_EQ(gathered.plan.stages.front(), broadcast.plan.stages.front());
        EXPECT_TRUE(std::equal(
            shards.plan.stages.begin(), shards.plan.stages.end(), gathered.plan.stages.begin() + 1));
        EXPECT_EQ(gathered.plan.blocks, shards.plan.blocks);
    }
}

}  // namespace
}  // namespace refit
