// SPDX-License-Identifier: Apache-2.0
// Estimates under spines, rails and NICs that fall short, each derived by hand.
#include <cmath>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/compare.hpp"
#include "refit/estimate.hpp"
#include "refit/methods.hpp"

namespace refit {
namespace {

using Changes = std::initializer_list<std::pair<std::string, std::string>>;

// Reshard-two-domains: a matrix of W bytes in quarters on trainers 0 to 3 of domain 0, all of it wanted by
// each of sixteen generators in domains 1 and 2. NICs of 50 GB/s at 0.94, NVLink 450 GB/s at 0.69
// (data/engines/nemo-rl.json).
constexpr double kMatrix = 8'589'934'592.0;
constexpr double kNic = 47e9;

struct OnFabric {
    PlanLoads loads;
    Estimate result;
    Report report;
};

OnFabric estimated(Method method, Changes changes, const std::string& name = "reshard-two-domains") {
    const auto scenario = shipped_scenario(name, changes);
    const auto workload = Workload::make(scenario);
    auto loads = make_loads(make_plan(method, scenario, workload).value(), scenario.cluster);
    auto result = estimate(loads, make_setting(scenario, workload));
    CompareRequest request;
    request.methods = {method};
    return {std::move(loads), std::move(result), compare(scenario, request)};
}

Term fabric_term(const Estimate& estimate, const std::string& name) {
    for (const auto& entry : estimate.terms) {
        if (entry.name == name) {
            return entry;
        }
    }
    return {};
}

bool mentions(const Term& term, const std::string& text) {
    return term.formula.find(text) != std::string::npos;
}

TEST(FabricEstimate, ATwoToOneSpineDoublesWhatGoesBetweenPods) {
    // Direct: each trainer sends its quarter to sixteen generators, 4 W by one NIC. Over the uplinks of its
    // pod, two NICs for four trainers, 16 W go in twice the time.
    const auto flat = estimated(Method::kDirect, {});
    EXPECT_NEAR(flat.result.transfer.value(), 4 * kMatrix / kNic, 1e-9);
    const auto spine =
        estimated(Method::kDirect, {{"fabric.oversubscription", "2:1"}, {"fabric.domains_per_pod", "1"}});
    EXPECT_NEAR(spine.result.transfer.value(), 2 * 4 * kMatrix / kNic, 1e-9);
    EXPECT_TRUE(mentions(fabric_term(spine.result, "bulk transfers"), "busiest uplink 1.46 s"))
        << fabric_term(spine.result, "bulk transfers").formula;
    const auto& method = spine.report.methods.front();
    EXPECT_EQ(method.bottleneck.resource, "spine-up");
    EXPECT_EQ(method.bottleneck.where, "pod 0");
    // W leaves pod 0 once, over two NICs' worth at line rate.
    EXPECT_EQ(spine.report.line_rate_bound.kind, BoundKind::kPodEgress);
    EXPECT_NEAR(spine.report.line_rate_bound.time.value(), kMatrix / 100e9, 1e-9);
}

TEST(FabricEstimate, WhatStaysInAPodDoesNotMeetItsUplinks) {
    // Pod 0 holds domains 0 and 1: half of the generators are reached inside, the other 8 W cross four
    // trainers' and eight generators' NICs over two: 12 x 47 / 2 = 282 GB/s. Trainers' NICs remain busier.
    const auto near =
        estimated(Method::kDirect, {{"fabric.oversubscription", "2:1"}, {"fabric.domains_per_pod", "2"}});
    EXPECT_NEAR(near.result.transfer.value(), 4 * kMatrix / kNic, 1e-9);
    ASSERT_EQ(near.loads.traffic.pods().size(), 2U);
    EXPECT_EQ(near.loads.traffic.pods()[0], (PodBytes{8ULL << 33U, 0}));
    EXPECT_EQ(near.loads.traffic.pods()[1], (PodBytes{0, 8ULL << 33U}));
    // One pod of everything has no uplinks to cross.
    const auto one =
        estimated(Method::kDirect, {{"fabric.oversubscription", "8:1"}, {"fabric.domains_per_pod", "4"}});
    EXPECT_NEAR(one.result.transfer.value(), 4 * kMatrix / kNic, 1e-9);
}

TEST(FabricEstimate, ABroadcastCrossesEachPodOnce) {
    // The ring has four channels, one a trainer, 188 GB/s. It leaves pod 0 with W over 4 x 47 / r.
    const auto flat = estimated(Method::kGatherBroadcast, {});
    EXPECT_NEAR(fabric_term(flat.result, "weight broadcast").seconds.value(), kMatrix / (4 * kNic), 1e-9);
    const auto spine = estimated(Method::kGatherBroadcast,
                                 {{"fabric.oversubscription", "4:1"}, {"fabric.domains_per_pod", "1"}});
    EXPECT_NEAR(fabric_term(spine.result, "weight broadcast").seconds.value(), kMatrix / kNic, 1e-9);
    EXPECT_TRUE(mentions(fabric_term(spine.result, "weight broadcast"), "47 GB/s, at the uplink of pod 0"))
        << fabric_term(spine.result, "weight broadcast").formula;
}

TEST(FabricEstimate, ASlowNicSlowsWhatGoesThroughIt) {
    // Half the rate: direct sends 4 W through it, the broadcast's channel a quarter of W; the other channels
    // wait.
    const Changes slow{{"fabric.nics.trainer:1", "200Gbit/s"}};
    const auto direct = estimated(Method::kDirect, slow);
    EXPECT_NEAR(direct.result.transfer.value(), 2 * 4 * kMatrix / kNic, 1e-9);
    EXPECT_EQ(direct.report.methods.front().bottleneck.resource, "nic-out");
    EXPECT_EQ(direct.report.methods.front().bottleneck.where, "trainer rank 1, NIC at 25 GB/s");
    const auto broadcast = estimated(Method::kGatherBroadcast, slow);
    EXPECT_NEAR(fabric_term(broadcast.result, "weight broadcast").seconds.value(), 2 * kMatrix / (4 * kNic), 1e-9);
    EXPECT_TRUE(mentions(fabric_term(broadcast.result, "weight broadcast"), "94 GB/s, at the NIC of trainer 1"))
        << fabric_term(broadcast.result, "weight broadcast").formula;
    // W leaves by three and a half NICs.
    EXPECT_EQ(direct.report.line_rate_bound.kind, BoundKind::kSourceEgress);
    EXPECT_NEAR(direct.report.line_rate_bound.time.value(), kMatrix / 175e9, 1e-9);
}

TEST(FabricEstimate, ANeighbourStandsInForANicThatIsDown) {
    const Changes down{{"fabric.nics.trainer:1", "down"}};
    // Trainer 2 sends what trainer 1 hands it beside its own: 8 W.
    const auto direct = estimated(Method::kDirect, down);
    EXPECT_NEAR(direct.result.transfer.value(), 8 * kMatrix / kNic, 1e-9);
    EXPECT_EQ(direct.report.methods.front().bottleneck.where, "trainer rank 2");
    EXPECT_EQ(direct.loads.traffic.nvlink_bytes(), 4ULL << 33U);
    // The ring keeps three channels.
    const auto broadcast = estimated(Method::kGatherBroadcast, down);
    EXPECT_NEAR(fabric_term(broadcast.result, "weight broadcast").seconds.value(), kMatrix / (3 * kNic), 1e-9);
    EXPECT_NEAR(direct.report.line_rate_bound.time.value(), kMatrix / 150e9, 1e-9);
}

TEST(FabricEstimate, OnRailsMessagesGoOverNvlinkFirst) {
    // Generators at places 0 to 3 of their domain are reached by the trainer on their rail, who has 3/4 of W
    // from the others; those at places 4 to 7, whose rails no trainer has, by the generators at the senders'
    // places, who pass all of it on. NVLink in two domains: 4 x 3/4 W + 4 W each; trainers' NICs still send 4
    // W.
    const auto direct = estimated(Method::kDirect, {{"fabric.rail_only", "true"}});
    EXPECT_EQ(direct.loads.traffic.network_bytes(), 16ULL << 33U);
    EXPECT_EQ(direct.loads.traffic.nvlink_bytes(), 14ULL << 33U);
    EXPECT_NEAR(direct.result.transfer.value(), 4 * kMatrix / kNic, 1e-9);
    EXPECT_EQ(direct.loads.traffic.ports()[4].nic_in, 2ULL << 33U);
    EXPECT_EQ(direct.loads.traffic.ports()[8].nic_in, 0U);
    // A ring's channels stay on the rails that all its domains have: four.
    const auto broadcast = estimated(Method::kGatherBroadcast, {{"fabric.rail_only", "true"}});
    EXPECT_NEAR(fabric_term(broadcast.result, "weight broadcast").seconds.value(), kMatrix / (4 * kNic), 1e-9);
}

TEST(FabricEstimate, OptimalKeepsToTheBoundAndTakesNoDeadPort) {
    for (const auto& changes :
         {Changes{{"fabric.nics.trainer:1", "down"}},
          Changes{{"fabric.nics.generation:3", "down"}, {"fabric.nics.0", "100Gbit/s"}},
          Changes{{"fabric.rail_only", "true"}, {"fabric.nics.2", "down"}},
          Changes{{"fabric.oversubscription", "2:1"}, {"fabric.domains_per_pod", "1"}}}) {
        const auto optimal = estimated(Method::kOptimal, changes);
        const auto bound = optimal.report.bound.time.value();
        const auto& stage = optimal.loads.stages.front();
        EXPECT_LE(bound, optimal.result.transfer.value() * (1.0 + 1e-9));
        EXPECT_LE(optimal.result.transfer.value(), 1.05 * bound * (1.0 + (stage.hops - 1.0) / stage.chunks));
    }
}

TEST(FabricEstimate, APlanThatNoNicCanCarryIsRefusedWithThePlace) {
    // Trainers have rails 0 to 3; of domain 1 only those of rails 4 to 7 work.
    const auto scenario = shipped_scenario("reshard-two-domains",
                                           {{"fabric.rail_only", "true"},
                                            {"fabric.nics.generation:0", "down"},
                                            {"fabric.nics.generation:1", "down"},
                                            {"fabric.nics.generation:2", "down"},
                                            {"fabric.nics.generation:3", "down"}});
    for (const auto method : {Method::kGatherBroadcast, Method::kHybrid, Method::kDirect, Method::kStriped}) {
        const auto plan = make_plan(method, scenario, Workload::make(scenario));
        ASSERT_FALSE(plan.has_value()) << name_of(method);
        EXPECT_EQ(plan.error().front().rule, "no-path") << name_of(method);
        EXPECT_EQ(plan.error().front().nearest, (Suggestion{"fabric.rail_only", "false", ""}));
    }
    const auto direct = make_plan(Method::kDirect, scenario, Workload::make(scenario));
    EXPECT_EQ(direct.error().front().message,
              "fabric.rail_only = true: direct sends from trainer 0 to generator 0, but no rail has a "
              "working NIC in both of "
              "NVLink domains 0 and 1");
}

TEST(FabricEstimate, OneToOneIsAsIfThereWereNoSpine) {
    for (const auto method :
         {Method::kGatherBroadcast, Method::kHybrid, Method::kStriped, Method::kOptimal}) {
        const auto flat = estimated(method, {}, "qwen3-235b-h100");
        const auto spine = estimated(
            method, {{"fabric.oversubscription", "1:1"}, {"fabric.domains_per_pod", "4"}}, "qwen3-235b-h100");
        EXPECT_EQ(flat.result.total, spine.result.total);
        EXPECT_EQ(flat.result.terms, spine.result.terms);
        // Rates of healthy NICs written out change nothing either, but are looked at port by port.
        const auto written = estimated(method, {{"fabric.nics.3", "400Gbit/s"}}, "qwen3-235b-h100");
        EXPECT_NEAR(flat.result.total.value(), written.result.total.value(), 1e-9);
    }
}

TEST(FabricEstimate, DeepSeekV3UnderATwoToOneSpine) {
    // Pods of 8 nodes: 64 trainers, four stages, or 64 generators, two of the eight replicas. Every pod of
    // generators gets a quarter; the trainers' pods 1 and 2 have sixteen of the 61 layers each, more than a
    // quarter, and send them over uplinks of 32 NICs. All stages at once, these bind.
    const auto flat =
        estimated(Method::kDirect, {{"engine.options.NRL_REFIT_NUM_STREAMS", "16"}}, "deepseek-v3-h100");
    const auto spine = estimated(Method::kDirect,
                                 {{"engine.options.NRL_REFIT_NUM_STREAMS", "16"},
                                  {"fabric.oversubscription", "2:1"},
                                  {"fabric.domains_per_pod", "8"}},
                                 "deepseek-v3-h100");
    const auto& pods = spine.loads.traffic.pods();
    ASSERT_EQ(pods.size(), 8U);
    for (std::size_t pod = 4; pod < 8; ++pod) {
        EXPECT_EQ(pods[pod].down, spine.loads.traffic.network_bytes() / 4);
    }
    EXPECT_GT(pods[1].up, pods[4].down);
    EXPECT_NEAR(spine.result.transfer.value(), static_cast<double>(pods[1].up) / (32 * kNic), 1e-9);
    EXPECT_TRUE(mentions(fabric_term(spine.result, "bulk transfers"), ", at the uplink of pod 1"))
        << fabric_term(spine.result, "bulk transfers").formula;
    EXPECT_EQ(spine.report.methods.front().bottleneck.where, "pod 1");
    EXPECT_LT(flat.result.transfer.value(), 0.6 * spine.result.transfer.value());
}

TEST(FabricEstimate, NoTransferBeatsTheBoundUnderRandomSpinesRailsAndNics) {
    std::mt19937 random{11};
    const auto library = shipped_library();
    const auto below = [&](std::uint32_t count) { return static_cast<std::uint32_t>(random() % count); };
    const auto pick = [&](std::initializer_list<const char*> options) {
        return std::string{*(options.begin() + below(static_cast<std::uint32_t>(options.size())))};
    };
    int answered = 0;
    for (int i = 0; i < 150; ++i) {
        auto draft = library.scenario("deepseek-v3-h100").value();
        draft.apply({"model", pick({"qwen3-30b-a3b", "nemotron-3-nano-30b-a3b", "teaching-matrix"}), ""});
        draft.apply({"system", pick({"h100-nvl8", "gb200-nvl72", "b200-nvl8"}), ""});
        draft.apply(
            {"train.layout",
             pick({"tp1", "tp2", "tp4"}) + pick({".pp1", ".pp2", ".pp4"}) + pick({".ep1", ".ep4", ".ep8"}),
             ""});
        draft.apply({"generate.layout", pick({"tp1", "tp2", "tp8", "tp16"}), ""});
        draft.apply({"train.gpus", pick({"32", "64", "96"}), ""});
        draft.apply({"generate.gpus", pick({"16", "32", "64"}), ""});
        draft.apply({"placement.generation_starts_new_domain", pick({"true", "false"}), ""});
        draft.apply({"placement.gpus_used_per_domain", pick({"4", "8"}), ""});
        std::string said;
        const auto set = [&](const std::string& field, const std::string& value) {
            draft.apply({field, value, ""});
            said += " " + field + "=" + value;
        };
        if (below(2) == 0) {
            set("fabric.oversubscription", pick({"1.5:1", "2:1", "7:2", "10:1"}));
            set("fabric.domains_per_pod", pick({"1", "2", "3", "5"}));
        }
        set("fabric.rail_only", pick({"true", "false"}));
        for (auto count = below(6); count > 0; --count) {
            set("fabric.nics." + std::to_string(below(48)), pick({"down", "down", "200Gbit/s", "37Gbit/s"}));
        }
        const auto scenario = io::resolve(draft, library);
        if (!scenario) {
            continue;
        }
        CompareRequest request;
        request.has_simulation = i % 2 == 0;
        const auto report = compare(*scenario, request);
        for (const auto& method : report.methods) {
            if (!method.refused.empty()) {
                EXPECT_TRUE(std::isfinite(report.bound.time.value()) ||
                            method.refused.front().rule == "no-path")
                    << said;
                continue;
            }
            ++answered;
            ASSERT_EQ(method.simulated.has_value(), request.has_simulation) << name_of(method.method) << said;
            if (method.simulated) {
                EXPECT_LE(report.bound.time.value(), method.simulated->transfer.value() * (1.0 + 1e-9))
                    << name_of(method.method) << said;
            }
            EXPECT_TRUE(std::isfinite(method.seconds.value())) << name_of(method.method) << said;
            EXPECT_LE(report.bound.time.value(), method.transfer.value() * (1.0 + 1e-9))
                << name_of(method.method) << " " << to_text(scenario->train) << " -> "
                << to_text(scenario->generate) << " " << scenario->model.id() << " "
                << scenario->cluster.train_system().name << " " << name_of(report.bound.kind) << " "
                << report.bound.where << said;
            EXPECT_LE(method.transfer.value(), method.seconds.value() + 1e-9);
        }
    }
    EXPECT_GT(answered, 200);
}

}  // namespace
}  // namespace refit
