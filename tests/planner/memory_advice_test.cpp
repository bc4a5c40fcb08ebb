// SPDX-License-Identifier: Apache-2.0
#include "refit/memory_advice.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/packs.hpp"
#include "refit/methods.hpp"

namespace refit {
namespace {

constexpr const char* kRatio = "engine.options.NRL_REFIT_BUFFER_MEMORY_RATIO";

Bytes gib(double size) {
    return Bytes{static_cast<std::uint64_t>(std::llround(size * 1073741824.0))};
}
Bytes mib(std::uint64_t size) {
    return Bytes{size << 20U};
}

struct Planned {
    Scenario scenario;
    Workload workload;
    Plan plan;
};

Planned planned(Method method, Scenario scenario) {
    auto workload = Workload::make(scenario);
    auto plan = make_plan(method, scenario, workload).value();
    return {std::move(scenario), std::move(workload), std::move(plan)};
}

Scenario mixed(std::initializer_list<std::pair<std::string, std::string>> more = {}) {
    auto draft = shipped_library().scenario("deepseek-v3-h100").value();
    draft.apply({"system.train", "h200-nvl8", ""});
    draft.apply({"system.generate", "h100-nvl8", ""});
    for (const auto& [field, value] : more) {
        draft.apply({field, value, ""});
    }
    return io::resolve(draft, shipped_library()).value();
}

const Fault* find(const Faults& faults, const std::string& rule) {
    const auto found = std::ranges::find(faults, rule, &Fault::rule);
    return found == faults.end() ? nullptr : &*found;
}

Faults warnings(const Planned& made) {
    return memory_warnings(made.plan, made.scenario, made.workload);
}

// Cases from public bug reports: docs/public_reports.md.

TEST(MemoryPublicReports, A45_AFusedGatherThatDoesNotFitIsToldBeforeTheRun) {
    // 38.9 + 49.7 + 0.51 + 8.0 = 97.11 GiB on a device of 95.08. One of the 512 experts at a time: 16 MiB.
    MemoryDemand demand{"training GPU", gib(95.08), {gib(38.9), gib(49.7), gib(0.51)}, 8_GiB, 1};
    EXPECT_NEAR(demand.needed().as_double(), gib(97.11).as_double(), 4.0);
    ASSERT_FALSE(demand.fits());
    const auto fault = overflow_fault(demand);
    EXPECT_EQ(fault.code, ErrorCode::kInfeasible);
    EXPECT_EQ(fault.rule, "memory-overflow");
    EXPECT_NE(fault.message.find("each training GPU needs"), std::string::npos);
    demand.buffer = Bytes{(8_GiB).count() / 512};
    EXPECT_EQ(demand.buffer, mib(16));
    EXPECT_TRUE(demand.fits());
}

TEST(MemoryPublicReports, A46_ATensorLargerThanThePackFillsOneAlone) {
    // Qwen3's embedding of 151,936 rows of 4096, 1187 MiB, in packs of 1 GiB: one grows to hold it.
    const auto made = planned(Method::kGatherBroadcast, shipped_scenario("qwen3-235b-h100"));
    const auto sizes = pack_sizes(made.plan, made.scenario, made.workload).value();
    EXPECT_EQ(sizes.largest_tensor.count(), 1'244'659'712U);
    const std::vector<ExportRun> runs{{0, 0, 0, 1, sizes.largest_tensor.count()}, {1, 0, 0, 1, 7}};
    const auto packs = make_packs(runs, (1_GiB).count());
    ASSERT_EQ(packs.size(), 2U);
    EXPECT_EQ(packs[0].bytes, sizes.largest_tensor.count());
    // 1,244,659,712 of 85,040,352,461 B: 1.4636 %. So from 0.0147 on no tensor is larger than a pack aims to
    // be.
    EXPECT_DOUBLE_EQ(sizes.smallest_ratio.value(), 0.0147);
    // Sides that close packs at different sizes are told so.
    EXPECT_NE(find(warnings(planned(Method::kGatherBroadcast, mixed())), "pack-sizes-differ"), nullptr);
}

TEST(MemoryPublicReports, A47_ExpertsAreGatheredOneTaskAtATime) {
    // 48 layers of 512 experts of 3 x 512 x 2048 x 2 B: 144 GiB, 3 GiB a layer.
    const auto folder = std::filesystem::path{testing::TempDir()} / "refit_a47";
    std::filesystem::create_directories(folder);
    std::ofstream{folder / "config.json"}
        << R"({"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48,
        "vocab_size": 151936, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "attention_bias": false,
        "intermediate_size": 6144, "decoder_sparse_step": 1, "mlp_only_layers": [], "num_experts": 512,
        "moe_intermediate_size": 512, "tie_word_embeddings": false, "torch_dtype": "bfloat16"})";
    io::ScenarioDraft draft;
    draft.apply({"model", folder.string(), ""});
    draft.apply({"train.layout", "ep8@8", ""});
    draft.apply({"generate.layout", "tp8@8", ""});
    draft.apply({"system", "h100-nvl8", ""});
    const auto made = planned(Method::kGatherBroadcast, io::resolve(draft, shipped_library()).value());
    Bytes experts;
    for (const auto& entry : made.workload.classes()) {
        experts += entry.parameter.is_expert() ? entry.parameter.bytes() : Bytes{};
    }
    EXPECT_EQ(experts, 144_GiB);
    // A task gathers one projection of 2 MiB of each of 8 ranks; one closes the pack, 7 wait. The plan says
    // so.
    const auto account = account_memory(made.plan, made.scenario, made.workload);
    const auto& uses = account.train.front().uses;
    const auto waiting = std::ranges::find(uses, MemoryCause::kGatherOutput, &MemoryUse::cause);
    ASSERT_NE(waiting, uses.end());
    EXPECT_EQ(waiting->bytes, mib(14));
}

TEST(MemoryPublicReports, A48_ACacheThatLeavesNoRoomIsToldWithTheBufferThatFits) {
    // vLLM keeps 0.95 of 80 GiB; 1 GiB for the communicator: 3 GiB are left for two buffers, 1.5 GiB each.
    const MemoryDemand demand{"generation GPU", 80_GiB, {76_GiB, 1_GiB}, 2_GiB, 2};
    ASSERT_FALSE(demand.fits());
    EXPECT_EQ(demand.largest_buffer().value().count(), (3_GiB).count() / 2);
    EXPECT_NE(overflow_fault(demand).message.find("each fit"), std::string::npos);
    // With its cache freed during the refit it fits.
    EXPECT_TRUE((MemoryDemand{"generation GPU", 80_GiB, {1_GiB}, 2_GiB, 2}.fits()));
}

TEST(MemoryPublicReports, A49_StagedCopiesOfAllRanksOfAHostMustFitTogether) {
    // 8 x 30 GB = 240 GB on a host of 200 GB: at most 25 GB each.
    const MemoryDemand demand{"host", 200_GB, {}, 30_GB, 8};
    EXPECT_EQ(demand.needed(), 240_GB);
    EXPECT_FALSE(demand.fits());
    EXPECT_EQ(demand.largest_buffer(), 25_GB);
}

TEST(MemoryDemand, NothingFitsWhereTheResidentsAloneOverflow) {
    const MemoryDemand demand{"host", 10_GB, {11_GB}, 1_GB, 1};
    EXPECT_EQ(demand.largest_buffer(), std::nullopt);
    EXPECT_NE(overflow_fault(demand).message.find("nothing fits"), std::string::npos);
    EXPECT_TRUE((MemoryDemand{"host", 10_GB, {9_GB}, 1_GB, 1}.fits()));
}

TEST(WeightBytes, AreThoseOfTheFullestGpu) {
    // An 8 GiB matrix on one trainer a part, and its parts on the generators.
    const auto scenario = shipped_scenario("deepseek-v3-h100");
    const auto workload = Workload::make(scenario);
    const auto weights = weight_bytes(workload);
    EXPECT_EQ(weights.generation.count(), std::ranges::max(workload.generator_bytes()));
    // A trainer of a stage with four MoE layers holds 4 x 16 experts of 3 x 2048 x 7168 x 2 B and the dense
    // parts whole.
    EXPECT_GT(weights.train.count(), std::uint64_t{4} * 16 * 3 * 2048 * 7168 * 2);
    EXPECT_LT(weights.train, 10_GB);
}

TEST(PackSizes, TheLargestRatioFitsAndTheNextDoesNot) {
    const auto made =
        planned(Method::kGatherBroadcast,
                shipped_scenario("qwen3-235b-h100", {{"engine.options.NRL_REFIT_NUM_BUFFERS", "12"}}));
    const auto sizes = pack_sizes(made.plan, made.scenario, made.workload).value();
    const auto weights = weight_bytes(made.workload);
    const auto memory = made.scenario.cluster.train_system().gpu_memory.value;
    const auto fits = [&](double ratio) {
        auto changed = made.scenario;
        changed.engine.options.buffer_memory_ratio = ratio;
        const auto peak = peak_bytes(made.plan, changed, made.workload);
        return peak.train + weights.train <= memory && peak.generation + weights.generation <= memory;
    };
    ASSERT_TRUE(sizes.largest_ratio.has_value());
    EXPECT_TRUE(fits(*sizes.largest_ratio));
    EXPECT_FALSE(fits(*sizes.largest_ratio + 0.0001));
    EXPECT_TRUE(sizes.agree);
    EXPECT_EQ(sizes.agreeing_ratio, std::nullopt);
}

TEST(PackSizes, APlanWithoutPacksHasNone) {
    const auto made = planned(Method::kDirect, shipped_scenario("qwen3-235b-h100"));
    EXPECT_EQ(pack_sizes(made.plan, made.scenario, made.workload), std::nullopt);
}

TEST(MemoryWarnings, GpusOfUnequalMemoryPackDifferently) {
    const auto found = warnings(planned(Method::kGatherBroadcast, mixed()));
    const auto* fault = find(found, "pack-sizes-differ");
    ASSERT_NE(fault, nullptr);
    EXPECT_NE(fault->message.find("on the trainers alone cures it"), std::string::npos) << fault->message;
    // Both sides are capped at 5 GiB from 5 / 79.2 on: 0.0632.
    ASSERT_TRUE(fault->nearest.has_value());
    EXPECT_EQ(fault->nearest->field, kRatio);
    EXPECT_EQ(fault->nearest->value, "0.0632");
    EXPECT_EQ(
        find(warnings(planned(Method::kGatherBroadcast, mixed({{kRatio, "0.0632"}}))), "pack-sizes-differ"),
        nullptr);
    EXPECT_NE(
        find(warnings(planned(Method::kGatherBroadcast, mixed({{kRatio, "0.06"}}))), "pack-sizes-differ"),
        nullptr);
}

TEST(MemoryWarnings, UnequalMemoryDoesNotMatterWherePacksCloseAtTheSameTensors) {
    // One matrix of 8 GiB is one pack at any size.
    auto draft = shipped_library().scenario("reshard-one-domain").value();
    draft.apply({"system.train", "h200-nvl8", ""});
    draft.apply({"system.generate", "h100-nvl8", ""});
    const auto scenario = io::resolve(draft, shipped_library());
    ASSERT_TRUE(scenario.has_value()) << scenario.error().front().message;
    const auto made = planned(Method::kGatherBroadcast, *scenario);
    EXPECT_EQ(find(warnings(made), "pack-sizes-differ"), nullptr);
}

TEST(MemoryWarnings, SayWhatDoesNotFitBesideTheWeights) {
    const auto made =
        planned(Method::kGatherBroadcast,
                shipped_scenario("deepseek-v3-h100",
                                 {{kRatio, "0.06"}, {"engine.options.NRL_REFIT_NUM_BUFFERS", "9"}}));
    const auto found = warnings(made);
    const auto* fault = find(found, "memory-overflow");
    ASSERT_NE(fault, nullptr);
    EXPECT_EQ(fault->where, "training GPU");
}

TEST(MemoryWarnings, AreNoneForShippedScenarios) {
    for (const auto& entry :
         std::filesystem::directory_iterator{std::filesystem::path{REFIT_DATA_DIR} / "scenarios"}) {
        const auto scenario = shipped_scenario(entry.path().stem().string());
        for (const auto method :
             {Method::kGatherBroadcast, Method::kHybrid, Method::kDirect, Method::kStriped}) {
            const auto workload = Workload::make(scenario);
            const auto plan = make_plan(method, scenario, workload).value();
            const auto found = memory_warnings(plan, scenario, workload);
            EXPECT_TRUE(found.empty()) << entry.path() << " " << found.front().message;
        }
    }
}

}  // namespace
}  // namespace refit
