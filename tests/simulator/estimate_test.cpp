// SPDX-License-Identifier: Apache-2.0
#include "refit/estimate.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/methods.hpp"

namespace refit {
namespace {

struct Estimated {
    Scenario scenario;
    Setting setting;
    PlanLoads loads;
    Estimate result;
};

Estimated estimated(Method method, const std::string& name,
                    std::initializer_list<std::pair<std::string, std::string>> changes = {}) {
    auto scenario = shipped_scenario(name, changes);
    const auto workload = Workload::make(scenario);
    auto setting = make_setting(scenario, workload);
    auto loads = make_loads(make_plan(method, scenario, workload).value(), scenario.cluster);
    auto result = estimate(loads, setting);
    return {std::move(scenario), std::move(setting), std::move(loads), std::move(result)};
}

double term(const Estimate& estimate, const std::string& name) {
    for (const auto& entry : estimate.terms) {
        if (entry.name == name) {
            return entry.seconds.value();
        }
    }
    return 0.0;
}

double phase(const Estimate& estimate, const std::string& name) {
    for (const auto& entry : estimate.phases) {
        if (entry.name == name) {
            return entry.seconds.value();
        }
    }
    return 0.0;
}

// Constants of data/engines/nemo-rl.json: NIC 0.94 x 50 = 47 GB/s; NVLink 0.69 x 450 = 310.5 GB/s on H100.

TEST(Estimate, DeepSeekV3OnH100BroadcastTermByTerm) {
    const auto e = estimated(Method::kGatherBroadcast, "deepseek-v3-h100");
    // Pipeline broadcast: each place carries 115,973,922,816 B over one NIC a node (every member on its own node).
    EXPECT_NEAR(term(e.result, "pipeline broadcast"), 115'973'922'816.0 / 47e9, 1e-6);
    // EP all-gather: 15/16 of 1,307,817,541,632 B; 8 members a node, so 8 NICs = 376 GB/s, NVLink binds.
    EXPECT_NEAR(term(e.result, "EP all-gather"), 1'226'078'945'280.0 / 310.5e9, 1e-6);
    // Device copies: experts unpacked once, everything packed once, over 1450 GB/s.
    EXPECT_NEAR(term(e.result, "device copies"), (1'307'817'541'632.0 + 1'342'052'868'096.0) / 1450e9, 1e-6);
    EXPECT_NEAR(term(e.result, "collective calls"), 5430 * 0.33e-3, 1e-9);
    EXPECT_NEAR(term(e.result, "weight broadcast"), 1'342'052'868'096.0 / 310.5e9, 1e-6);
    // 45,395 tensors x (92 + 0.12 x 256) us, hidden.
    EXPECT_NEAR(term(e.result, "loading"), 45'395 * (92e-6 + 0.12e-6 * 256), 1e-6);
    EXPECT_NEAR(term(e.result, "control"), 0.14 + 512 * 0.30e-3, 1e-9);
    // Gather 2.467 + 3.949 + 1.827 + 1.792, then all of the broadcast's 4.322, since gathers use the same NICs for
    // 6.416 s, and 0.294 fixed: 14.65 s.
    EXPECT_NEAR(e.result.total.value(), 14.652, 0.001);
    EXPECT_NEAR(e.result.transfer.value(), 2.4675 + 3.9487 + 4.3222, 0.001);
}

TEST(Estimate, DeepSeekV3OnH100ReshardTermByTerm) {
    const auto e = estimated(Method::kHybrid, "deepseek-v3-h100");
    // 1,310,195,712,000 B leave 16 trainers a stage once: 81.9 GB / 47 GB/s = 1.7423 s over all stages; replicas
    // pass 7/8 of a 32nd: 0.7623 s; two stages in flight: half of the sum.
    const auto send = 1'310'195'712'000.0 / 16 / 47e9;
    const auto replicas = 1'310'195'712'000.0 / 32 * 7 / 8 / 47e9;
    EXPECT_NEAR(term(e.result, "bulk transfers"), (send + replicas) / 2, 1e-6);
    // 3 projections x 58 layers over 16 stages, 5.2 ms each.
    EXPECT_NEAR(term(e.result, "grouped experts"), 174.0 / 16 * 5.2e-3, 1e-9);
    // The rest: 31,857,156,096 B by pipeline broadcast on one NIC, packed once, 784 dense tasks (790 less the FFN's 6),
    // broadcast; and fixed.
    constexpr double kMisc = 31'857'156'096.0;
    const auto rest = kMisc / 47e9 + kMisc / 1450e9 + 784 * 0.33e-3 + kMisc / 310.5e9;
    EXPECT_NEAR(e.result.total.value(), (send + replicas) / 2 + 174.0 / 16 * 5.2e-3 + rest + 0.14 + 512 * 0.3e-3, 1e-6);
}

TEST(Estimate, MoreStreamsStopHelpingAtTheReceiver) {
    // Receivers take 1/256 of the bytes from trainers and 7/8 of a 32nd from replicas, one stage after the other.
    const auto floor = 1'310'195'712'000.0 / 256 / 47e9 + 1'310'195'712'000.0 / 32 * 7 / 8 / 47e9;
    const auto e = estimated(Method::kHybrid, "deepseek-v3-h100", {{"engine.options.NRL_REFIT_NUM_STREAMS", "16"}});
    EXPECT_NEAR(term(e.result, "bulk transfers"), floor, 1e-6);
}

TEST(Estimate, OnGb200TheBroadcastHidesBehindNvlinkWork) {
    // EP groups lie inside a rack; only the pipeline broadcast (4 members a rack: 4 NICs, 188 GB/s) shares NICs with
    // the weight broadcast, so just its 0.617 s are added.
    const auto e = estimated(Method::kGatherBroadcast, "deepseek-v3-gb200");
    EXPECT_NEAR(phase(e.result, "broadcast"), 115'973'922'816.0 / 188e9, 1e-6);
    // Blackwell finalises 256 experts x 58 layers, 27 us each.
    EXPECT_NEAR(phase(e.result, "finalize"), 256 * 58 * 27e-6, 1e-9);
}

// DeepSeek-V3 on H100: 58 layers x 3 grouped parameters / 16 stages; a trainer of EP16 holds 256 / 16 experts of each.
TEST(Estimate, TakesTheChosenReading) {
    const auto grouped = [](const std::string& reading) {
        return term(estimated(Method::kHybrid, "deepseek-v3-h100", {{"engine.options.bulk_cost", reading}}).result,
                    "grouped experts");
    };
    EXPECT_NEAR(grouped("per-parameter"), 58 * 3 / 16.0 * 5.2e-3, 1e-9);
    EXPECT_NEAR(grouped("floor"), 58 * 3 / 16.0 * 1e-3, 1e-9);
    EXPECT_NEAR(grouped("per-expert"), 58 * 3 / 16.0 * 256 / 16 * 0.24e-3, 1e-9);
    // Every GPU ends with 8,589,934,592 B. Sixteen replicas gather 15/16 of it over NVLink, not over one NIC.
    const std::pair<std::string, std::string> wide{"engine.options.replica_ring", "every-nic"};
    const auto by_byte =
        estimated(Method::kHybrid, "reshard-two-domains", {wide, {"engine.options.finalize", "per-local-byte"}});
    EXPECT_NEAR(phase(by_byte.result, "finalize"), 8'589'934'592.0 * 4.7e-12, 1e-9);
    EXPECT_NEAR(term(by_byte.result, "bulk transfers"),
                2'147'483'648.0 / 47e9 + 8'589'934'592.0 * 15 / 16 / 310.5e9,
                1e-6);
}

TEST(EstimateRange, SpansOnlyTheReadingsThatAreLeftOpen) {
    const auto width = [](std::initializer_list<std::pair<std::string, std::string>> chosen) {
        const auto e = estimated(Method::kHybrid, "deepseek-v3-gb200", chosen);
        const auto range = estimate_range(e.loads, e.setting, true);
        return range.high / range.low;
    };
    const auto open = width({});
    const auto chosen = width({{"engine.options.replica_ring", "one-nic"}});
    const auto all_chosen = width({{"engine.options.replica_ring", "one-nic"},
                                   {"engine.options.finalize", "per-expert"},
                                   {"engine.options.bulk_cost", "per-parameter"}});
    EXPECT_LT(chosen, open);
    EXPECT_LT(all_chosen, chosen);
}

TEST(Estimate, NemotronUltraIsHeldUpByLoading) {
    // 49,983 tensors x (92 + 0.12 x 512) us; the gather is hidden.
    const auto e = estimated(Method::kGatherBroadcast, "nemotron-ultra-gb200");
    EXPECT_NEAR(phase(e.result, "load"), 49'983 * (92e-6 + 0.12e-6 * 512), 1e-6);
    for (const auto& entry : e.result.phases) {
        EXPECT_EQ(entry.is_hidden, entry.name == "gather" || entry.name == "broadcast") << entry.name;
    }
}

TEST(Estimate, PhasesThatAreNotHiddenSumToTheTotal) {
    for (const auto& name : shipped_library().scenarios()) {
        for (const auto method : {Method::kGatherBroadcast, Method::kHybrid, Method::kDirect, Method::kStriped}) {
            const auto e = estimated(method, name);
            double sum = 0.0;
            for (const auto& entry : e.result.phases) {
                sum += entry.is_hidden ? 0.0 : entry.seconds.value();
            }
            EXPECT_NEAR(sum, e.result.total.value(), 1e-9) << name;
            EXPECT_LE(e.result.transfer.value(), e.result.total.value() + 1e-9) << name;
        }
    }
}

TEST(Estimate, FasterLinksAreNeverSlower) {
    for (const auto method : {Method::kGatherBroadcast, Method::kHybrid, Method::kDirect, Method::kStriped}) {
        const auto slow = estimated(method, "deepseek-v3-h100");
        const auto nic = estimated(method, "deepseek-v3-h100", {{"system.nic", "800Gbit/s"}});
        const auto nvlink = estimated(method, "deepseek-v3-h100", {{"system.nvlink", "900GB/s"}});
        EXPECT_LE(nic.result.total, slow.result.total);
        EXPECT_LE(nvlink.result.total, slow.result.total);
    }
}

TEST(EstimateRange, SpansTheReadingsAndTheModelError) {
    // On Hopper the readings differ by 4.7 ms per local GB; DeepSeek-V3: 43.94 GB a rank, 0.2065 s.
    const auto e = estimated(Method::kGatherBroadcast, "deepseek-v3-h100");
    // The model's 7 % is one standard deviation; 80 % are 1.2816 of them. Below only it counts, above the square root of both squares.
    const auto range = estimate_range(e.loads, e.setting, true);
    const auto error = 1.2816 * 0.07;
    const auto span = std::log(1.0 + 43.936587776 * 4.7e-3 / e.result.total.value());
    EXPECT_NEAR(range.low.value(), e.result.total.value() * std::exp(-error), 1e-6);
    EXPECT_NEAR(range.high.value(), e.result.total.value() * std::exp(std::hypot(span, error)), 1e-4);
}

TEST(EstimateRange, GrowsWithTheIntervalsOfConstantsAndTheirCorrelations) {
    // Nothing but 1 s that is known to a factor of 1.5, and 3 s of 1000 GPUs, known to 1.2: log deviations of
    // 0.25 log 1.5 and 0.75 log 1.2 of the whole 4 s.
    Setting setting;
    setting.gpus = 1000;
    setting.constants.fixed_cost = {1.0, 1.0 / 1.5, 1.5, "s", "s", "fitted", {}, {}, {}};
    setting.constants.fixed_cost_per_gpu = {3e-3, 3e-3 / 1.2, 3.6e-3, "s", "s", "prior", {}, {}, {}};
    const auto a = 0.25 * std::log(1.5);
    const auto b = 0.75 * std::log(1.2);
    const auto high = [&] { return estimate_range(PlanLoads{}, setting, true).high.value(); };
    EXPECT_NEAR(high(), 4.0 * std::exp(1.2816 * std::hypot(a, b)), 2e-3);
    EXPECT_NEAR(estimate_range(PlanLoads{}, setting, true).low.value(), 16.0 / high(), 1e-9);
    setting.constants.correlations = {{&EngineConstants::fixed_cost, &EngineConstants::fixed_cost_per_gpu, -1.0}};
    EXPECT_NEAR(high(), 4.0 * std::exp(1.2816 * std::abs(a - b)), 2e-3);
    setting.constants.fixed_cost.kind = "fixed";  // Then its interval is no error of a fit.
    setting.constants.correlations.clear();
    EXPECT_NEAR(high(), 4.0 * std::exp(1.2816 * b), 2e-3);
}

TEST(Estimate, TheTotalAloneIsTheSame) {
    for (const auto& name : shipped_library().scenarios()) {
        for (const auto method : {Method::kGatherBroadcast, Method::kHybrid, Method::kDirect, Method::kStriped}) {
            const auto e = estimated(method, name);
            for (const auto& reading : ReadingChoice{}.all()) {
                EXPECT_EQ(estimate_total(e.loads, e.setting, reading), estimate(e.loads, e.setting, reading).total) << name;
            }
        }
    }
}

TEST(EstimateRange, AnUncalibratedMethodSpansNoneToTwiceTheSoftwareCosts) {
    const auto e = estimated(Method::kDirect, "deepseek-v3-h100");
    const auto range = estimate_range(e.loads, e.setting, false);
    const auto half = [&](double ratio) { return std::exp(std::hypot(std::log(ratio), 1.2816 * 0.07)); };
    const auto total = e.result.total.value();
    const auto software = e.result.software.value();
    EXPECT_NEAR(range.low.value(), total / half(total / (total - software)), 1e-9);
    EXPECT_NEAR(range.high.value(), total * half((total + software) / total), 1e-9);
}

TEST(Estimate, ALoneRootHasOneNicTwoHaveTwoAndEightFillNvlink) {
    // 1,342,052,868,096 B over one NIC of 47 GB/s: 28.55 s. Dealt over two in turn: half, within two packs of it.
    const auto one = estimated(Method::kGatherBroadcast, "deepseek-v3-h100", {{"engine.options.broadcast_group", "generators"}});
    EXPECT_NEAR(term(one.result, "weight broadcast"), 1'342'052'868'096.0 / 47e9, 1e-6);
    const auto eight = estimated(Method::kGatherBroadcast, "deepseek-v3-h100",
                                 {{"engine.options.broadcast_group", "generators"}, {"engine.options.broadcast_senders", "8"}});
    // The NICs would take an eighth of 28.55 s, 3.57 s; every generator takes all over NVLink, 310.5 GB/s: 4.32 s.
    EXPECT_NEAR(term(eight.result, "weight broadcast"), 1'342'052'868'096.0 / 310.5e9, 1e-6);
    const auto two = estimated(Method::kGatherBroadcast, "deepseek-v3-h100",
                               {{"engine.options.broadcast_group", "generators"}, {"engine.options.broadcast_senders", "2"}});
    EXPECT_NEAR(term(two.result, "weight broadcast"), 1'342'052'868'096.0 / 2 / 47e9, 2 * 3.5e9 / 47e9);
}

TEST(Estimate, ARootInEachStageSparesThePipelineBroadcast) {
    // A stage of four MoE layers gathers 4/58 of 1,307,817,541,632 B, 15/16 of it over NVLink's 310.5 GB/s, and makes
    // 4 x 3 x 16 = 192 calls.
    const auto e = estimated(Method::kGatherBroadcast, "deepseek-v3-h100", {{"engine.options.broadcast_root", "each-pp-stage"}});
    EXPECT_EQ(term(e.result, "pipeline broadcast"), 0.0);
    EXPECT_NEAR(term(e.result, "EP all-gather"), 1'307'817'541'632.0 / 58 * 4 * 15 / 16 / 310.5e9, 1e-6);
    EXPECT_NEAR(term(e.result, "collective calls"), 192 * 0.33e-3, 1e-9);
    // Sixteen rings over all ranks share what one would use: NVLink carries every byte.
    EXPECT_NEAR(term(e.result, "weight broadcast"), 1'342'052'868'096.0 / 310.5e9, 1e-6);
}

// miles: every pipeline stage gathers its own, then its first rank broadcasts over its NIC, one stage after another, and
// receivers load what came. Largest stages of DeepSeek-V3: four MoE layers.
TEST(Estimate, MilesBroadcastsStageByStageAndOverlapsNothing) {
    const auto e = estimated(Method::kGatherBroadcast, "deepseek-v3-h100", {{"engine.name", "miles"}});
    const auto& constants = e.setting.constants;
    // 15/16 of 4 x 22,548,578,304 B of experts.
    EXPECT_NEAR(term(e.result, "EP all-gather"), 84'557'168'640.0 / (constants.nvlink_efficiency.value * 450e9), 1e-6);
    EXPECT_NEAR(term(e.result, "weight broadcast"), 1'342'052'868'096.0 / (constants.nic_efficiency.value * 50e9), 1e-6);
    const auto per_tensor = constants.tensor_cost.value + 256 * constants.tensor_cost_per_expert.value;
    EXPECT_NEAR(phase(e.result, "load"), 45'395 * per_tensor, 1e-9);
    EXPECT_NEAR(e.result.total.value(),
                constants.fixed_cost.value + phase(e.result, "gather") + phase(e.result, "broadcast") +
                    phase(e.result, "load"),
                1e-9);
    for (const auto& entry : e.result.terms) {
        EXPECT_FALSE(entry.is_hidden) << entry.name;
    }
}

TEST(Estimate, RootsAtOnceShareTheReceiversAndRootsInTurnsDoNot) {
    const auto turns = estimated(Method::kGatherBroadcast, "deepseek-v3-h100", {{"engine.name", "miles"}});
    const auto once = estimated(Method::kGatherBroadcast,
                                "deepseek-v3-h100",
                                {{"engine.name", "miles"}, {"engine.options.broadcast_in_turns", "false"}});
    EXPECT_GT(phase(turns.result, "broadcast"), 3.0 * phase(once.result, "broadcast"));
    EXPECT_EQ(phase(turns.result, "load"), phase(once.result, "load"));
}

TEST(Estimate, MilesSendsDirectFromWhatAStageGatheredAndStaged) {
    const auto e = estimated(Method::kDirect, "deepseek-v3-h100", {{"engine.name", "miles"}});
    const auto& constants = e.setting.constants;
    // An MoE layer of 256 x 3 + 3 + 2 + 9 = 782 tensors and 23,014,573,056 B: experts 22,548,578,304, shared ones
    // 88,080,384, gate 3,670,016 and its FP32 bias 1,024, attention 374,214,656, norms 28,672.
    EXPECT_NEAR(term(e.result, "staging"),
                4 * (23'014'573'056.0 * constants.staging_cost_per_byte.value +
                     782 * constants.staging_tensor_cost.value),
                1e-6);
    EXPECT_EQ(term(e.result, "loading"), 0.0);
    EXPECT_EQ(term(e.result, "other than FFN"), 0.0);
    // A thread writes what is staged: the wire hides.
    EXPECT_GT(phase(e.result, "gather"), phase(e.result, "bulk"));
    EXPECT_NEAR(e.result.total.value(), constants.fixed_cost.value + phase(e.result, "gather"), 1e-9);
    const auto serial = estimated(Method::kDirect,
                                  "deepseek-v3-h100",
                                  {{"engine.name", "miles"}, {"engine.options.direct_overlap", "serial"}});
    EXPECT_NEAR(
        (serial.result.total - e.result.total).value(), phase(serial.result, "bulk"), 1e-9);
}

// verl: the eight trainers of the root's node relay, so eight NICs leave it, where NVLink is not slower.
TEST(Estimate, VerlLeavesOverTheNicsOfTheRootsNodeAndCopiesBuckets) {
    const auto e = estimated(Method::kGatherBroadcast, "deepseek-v3-h100", {{"engine.name", "verl"}});
    const auto& constants = e.setting.constants;
    const auto nic = constants.nic_efficiency.value * 50e9;
    ASSERT_LT(8 * nic, constants.nvlink_efficiency.value * 450e9);
    EXPECT_NEAR(term(e.result, "weight broadcast"), 1'342'052'868'096.0 / (8 * nic), 1e-6);
    EXPECT_NEAR(term(e.result, "loading"), 1'342'052'868'096.0 * constants.load_cost_per_byte.value, 1e-9);
    const auto alone = estimated(Method::kGatherBroadcast,
                                 "deepseek-v3-h100",
                                 {{"engine.name", "verl"}, {"engine.options.broadcast_group", "generators"}});
    EXPECT_NEAR(term(alone.result, "weight broadcast"), 1'342'052'868'096.0 / nic, 1e-6);
}

// Of Qwen3-235B's 36,945 tensors 94 x 128 x 3 = 36,096 are experts', of which a rank of EP8 loads 4,512, and all 849 others.
TEST(Estimate, ReceiversOfVllmLoadTheTensorsOfWhichTheyHoldAPart) {
    const std::pair<std::string, std::string> layout{"generate.layout", "tp8.ep8"};
    const auto serial = estimated(
        Method::kDirect, "qwen3-235b-h100", {layout, {"engine.name", "vllm"}, {"engine.options.direct_overlap", "serial"}});
    const auto loading = (4512 + 849) * serial.setting.constants.tensor_cost.value;
    EXPECT_NEAR(term(serial.result, "loading"), loading, 1e-9);
    EXPECT_NEAR(serial.result.total.value(), phase(serial.result, "bulk") + loading, 1e-9);
    const auto pipelined = estimated(Method::kDirect, "qwen3-235b-h100", {layout, {"engine.name", "vllm"}});
    EXPECT_NEAR(pipelined.result.total.value(), std::max(phase(serial.result, "bulk"), loading), 1e-9);
    const auto all = estimated(Method::kDirect,
                               "qwen3-235b-h100",
                               {layout, {"engine.name", "vllm"}, {"engine.options.direct_loading", "all"}});
    EXPECT_NEAR(term(all.result, "loading"), 36'945 * serial.setting.constants.tensor_cost.value, 1e-9);
}

TEST(Estimate, NixlLastsAsLongAsTheLongestOfGatherWireAndLoading) {
    const std::initializer_list<std::pair<std::string, std::string>> nixl{{"engine.options.direct_source", "gathered"},
                                                                          {"engine.options.direct_loading", "all"}};
    const auto e = estimated(Method::kDirect, "deepseek-v3-h100", nixl);
    const auto chain = estimated(Method::kGatherBroadcast, "deepseek-v3-h100");
    double gathering = 0.0;
    for (const auto* name : {"pipeline broadcast", "EP all-gather", "device copies", "collective calls"}) {
        EXPECT_EQ(term(e.result, name), term(chain.result, name)) << name;
        gathering += term(e.result, name);
    }
    EXPECT_EQ(term(e.result, "loading"), term(chain.result, "loading"));
    // Fixed: 0.14 s + 512 x 0.3 ms.
    EXPECT_NEAR(e.result.total.value(), 0.2936 + gathering, 1e-9);
}

}  // namespace
}  // namespace refit
