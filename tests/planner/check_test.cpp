// SPDX-License-Identifier: Apache-2.0
#include "refit/check.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "fault_lines.hpp"
#include "refit/fabric.hpp"
#include "refit/methods.hpp"

namespace refit {
namespace {

class ShippedPlan : public testing::TestWithParam<std::tuple<std::string, Method>> {};

TEST_P(ShippedPlan, DeliversEveryElementExactlyOnce) {
    const auto& [name, method] = GetParam();
    const auto scenario = shipped_scenario(name);
    const auto workload = Workload::make(scenario);
    const auto plan = make_plan(method, scenario, workload);
    if (!plan) {
        GTEST_SKIP() << "refused: " << plan.error().front().message;
    }
    EXPECT_EQ(testing_support::fault_lines(check_plan(*plan, workload, scenario.cluster)), "");
}

class Fp8Plan : public testing::TestWithParam<std::tuple<const char*, Method>> {};

TEST_P(Fp8Plan, DeliversEveryValueAndScaleExactlyOnce) {
    const auto& [coverage, method] = GetParam();
    for (const auto& scenario :
         {qwen_30b_in_fp8({{"engine.coverage", coverage}}),
          qwen_30b_in_fp8(
              {{"engine.coverage", coverage}, {"train.layout", "tp4.pp2.ep8"}, {"generate.layout", "tp2"}}),
          qwen_30b_in_fp8({{"engine.coverage", coverage},
                           {"train.layout", "tp8.pp2"},
                           {"generate.layout", "tp4.ep4"}})}) {
        const auto workload = Workload::make(scenario);
        const auto plan = make_plan(method, scenario, workload);
        ASSERT_TRUE(plan.has_value()) << testing_support::fault_lines(plan.error());
        EXPECT_EQ(testing_support::fault_lines(check_plan(*plan, workload, scenario.cluster)), "");
    }
}

INSTANTIATE_TEST_SUITE_P(All,
                         Fp8Plan,
                         testing::Combine(testing::Values("nemo-rl-names", "all"),
                                          testing::Values(Method::kGatherBroadcast,
                                                          Method::kHybrid,
                                                          Method::kDirect,
                                                          Method::kStriped,
                                                          Method::kOptimal)));

TEST(Fp8Refit, ByM2nDeliversEveryValueAndScaleToo) {
    // M2N takes no q, k and v that trainers store fused; latent attention has none.
    const auto scenario = qwen_30b_in_fp8({{"model", "moonlight-16b-a3b"}, {"generate.layout", "tp2.ep2"}});
    const auto workload = Workload::make(scenario);
    const auto plan = make_plan(Method::kM2n, scenario, workload);
    ASSERT_TRUE(plan.has_value()) << testing_support::fault_lines(plan.error());
    EXPECT_EQ(testing_support::fault_lines(check_plan(*plan, workload, scenario.cluster)), "");
}

TEST(Fp8Refit, SendsExpertsByTransfersAndEveryScaleAsATensorOfItsOwn) {
    // Of 37,491 tensors (counted in fp8_blocks_test.cpp) 18,432 go by transfers. The rest, 18,432 scales of
    // experts and 192 of attention, its 192 values and 243 BF16 tensors, is gathered, broadcast and loaded
    // one by one.
    const auto scenario = qwen_30b_in_fp8();
    const auto workload = Workload::make(scenario);
    const auto plan = make_plan(Method::kHybrid, scenario, workload).value();
    const auto gather = std::ranges::find(plan.stages, StageKind::kGather, &PlanStage::kind);
    ASSERT_NE(gather, plan.stages.end());
    EXPECT_EQ(gather->loaded_tensors, 19'059U);
    EXPECT_EQ(gather->payload.count(), 31'174'545'408U - 28'991'029'248U);
    std::uint64_t by_transfers = 0;
    for (const auto& stage : plan.stages) {
        by_transfers += stage.kind == StageKind::kTransfer ? stage.payload.count() : 0;
    }
    EXPECT_EQ(by_transfers, 28'991'029'248U);
    // Scales are gathered over EP8: 16 local experts x 3 x 48 layers.
    const auto calls =
        std::ranges::find(gather->collectives, CollectiveRole::kExpertAllGather, &Collective::role);
    ASSERT_NE(calls, gather->collectives.end());
    EXPECT_EQ(calls->calls, 16U * 3 * 48);
    EXPECT_EQ(calls->bytes.front(), 18'432U * 6 * 16 * 4);
}

/// Two layers of a 4 x 4 tensor in BF16: two trainers hold two rows each, two generators want two columns
/// each.
Workload rows_to_columns() {
    const std::vector<std::uint64_t> shape{4, 4};
    const auto whole = Box::whole(shape);
    ParameterClass parameter;
    parameter.name = "layers.{layer}.weight";
    parameter.shape = shape;
    parameter.layers = {0, 1};
    const Distribution source{shape, {{{whole.with(0, {0, 2})}, {0}}, {{whole.with(0, {2, 4})}, {1}}}};
    const Distribution destination{shape, {{{whole.with(1, {0, 2})}, {0}}, {{whole.with(1, {2, 4})}, {1}}}};
    return Workload::of({{parameter, source, {destination}, {{0, 0, 2}}}}, 1, 2, 2);
}

Cluster four_ranks() {
    const auto system = shipped_library().system("h100-nvl8", "system").value();
    return {system, system, 2, 2, {8, 8, true}};
}

Plan planned(Method method) {
    const auto cluster = four_ranks();
    return make_plan(method, cluster, port_rates(cluster, 1.0, 1.0), rows_to_columns()).value();
}

TEST(CheckPlan, NamesWhatNobodyDelivers) {
    // Four quarters go; the last one is from trainer 1 to generator 1, which is rank 3: rows [2, 4) of
    // columns [2, 4).
    auto plan = planned(Method::kDirect);
    auto& block = plan.blocks.front();
    ASSERT_EQ(block.size(), 4U);
    block.source.pop_back();
    block.destination.pop_back();
    block.box.pop_back();
    EXPECT_EQ(testing_support::fault_lines(check_plan(plan, rows_to_columns(), four_ranks())),
              "missing: direct, class 0 'layers.{layer}.weight', slice 0 (trainer stage 0 to generator stage "
              "0), rank 3, "
              "tensors [0, 2), elements [2, 4) x [2, 4): wanted, never written\n");
}

TEST(CheckPlan, NamesWhoSendsWhatItDoesNotHold) {
    auto plan = planned(Method::kDirect);
    plan.blocks.front().source.back() = 0;
    EXPECT_EQ(testing_support::fault_lines(check_plan(plan, rows_to_columns(), four_ranks())),
              "source: direct, stage 0 (transfer), class 0 'layers.{layer}.weight', slice 0 (trainer stage 0 "
              "to generator "
              "stage 0), rank 0, tensors [0, 2), elements [2, 4) x [2, 4): sent by a rank that does not hold "
              "it, in "
              "transfer 3\n");
}

TEST(CheckPlan, NamesWhichStagesWriteTwice) {
    auto plan = planned(Method::kDirect);
    // The same again, as relays: trainer 0's quarter of generator 0, tensor 1 alone.
    auto& stage = plan.stages.emplace_back();
    stage.kind = StageKind::kRelay;
    const auto quarter = plan.blocks.front().boxes[plan.blocks.front().box.front()];
    stage.relays = {{{0, 0, 1, 1, quarter}}, {{0, 1, 8}}, {0}, {0}, {2}, {RelayTable::kNone}, 1};
    EXPECT_EQ(testing_support::fault_lines(check_plan(plan, rows_to_columns(), four_ranks())),
              "repeated: direct, class 0 'layers.{layer}.weight', slice 0 (trainer stage 0 to generator "
              "stage 0), rank 2, "
              "tensors [1, 2), elements [0, 2) x [0, 2): written more than once, by stage 0 and 1\n");
}

TEST(CheckPlan, TakesRelaysThatPassOnWhatTheyDoNotWant) {
    // Trainer 0 sends its rows of both layers to trainer 1, which sends them on with its own: 0 -> 1 -> each
    // generator.
    const auto workload = rows_to_columns();
    Plan plan;
    plan.method = Method::kOptimal;
    auto& stage = plan.stages.emplace_back();
    stage.kind = StageKind::kRelay;
    const auto whole = Box::whole(std::vector<std::uint64_t>{4, 4});
    auto& relays = stage.relays;
    for (const std::uint64_t column : {0U, 2U}) {
        for (const std::uint64_t row : {0U, 2U}) {
            const auto message = static_cast<std::uint32_t>(relays.messages.size());
            relays.parts.push_back({0, 0, 0, 2, whole.with(0, {row, row + 2}).with(1, {column, column + 2})});
            relays.messages.push_back({message, 1, 16});
            const auto add = [&](std::uint32_t from, std::uint32_t to, std::uint32_t follows) {
                relays.message.push_back(message);
                relays.source.push_back(from);
                relays.destination.push_back(to);
                relays.follows.push_back(follows);
            };
            const bool is_relayed = row == 0;
            if (is_relayed) {
                add(0, 1, RelayTable::kNone);
            }
            add(1,
                column == 0 ? 2 : 3,
                is_relayed ? static_cast<std::uint32_t>(relays.size() - 1) : RelayTable::kNone);
        }
    }
    EXPECT_EQ(testing_support::fault_lines(check_plan(plan, workload, four_ranks())), "");
    relays.follows[1] = RelayTable::kNone;
    const auto faults = check_plan(plan, workload, four_ranks());
    ASSERT_EQ(faults.size(), 2U);
    EXPECT_EQ(faults[0].rule, "needless");
    EXPECT_EQ(faults[1].rule, "source");
}

/// The rules that a relay plan of one message breaks: both layers of box `box`, over `hops` of (from, to,
/// follows).
std::set<std::string> broken_rules(const Workload& workload,
                                   const Box& box,
                                   const std::vector<std::array<std::uint32_t, 3>>& hops) {
    Plan plan;
    auto& stage = plan.stages.emplace_back();
    stage.kind = StageKind::kRelay;
    stage.relays.parts = {{0, 0, 0, 2, box}};
    stage.relays.messages = {{0, 1, box.volume() * 2 * 2}};
    for (const auto& hop : hops) {
        stage.relays.message.push_back(0);
        stage.relays.source.push_back(hop[0]);
        stage.relays.destination.push_back(hop[1]);
        stage.relays.follows.push_back(hop[2]);
    }
    std::set<std::string> rules;
    for (const auto& fault : check_plan(plan, workload, four_ranks())) {
        rules.insert(fault.rule);
    }
    return rules;
}

TEST(CheckPlan, TellsWasteOnTheWay) {
    // Both trainers hold all, both generators want all: 0 -> 2 -> 3 will do.
    constexpr auto kNone = RelayTable::kNone;
    const std::vector<std::uint64_t> shape{4, 4};
    const auto whole = Box::whole(shape);
    ParameterClass parameter;
    parameter.name = "layers.{layer}.weight";
    parameter.shape = shape;
    parameter.layers = {0, 1};
    const Distribution all{shape, {{{whole}, {0, 1}}}};
    const auto everywhere = Workload::of({{parameter, all, {all}, {{0, 0, 2}}}}, 1, 2, 2);
    using Rules = std::set<std::string>;
    EXPECT_EQ(broken_rules(everywhere, whole, {{0, 2, kNone}, {2, 3, 0}}), Rules{});
    EXPECT_EQ(broken_rules(everywhere, whole, {{0, 1, kNone}, {1, 2, 0}, {2, 3, 1}}), Rules{"needless"});
    // With one holder, a proxy that gets the message twice passes it on twice.
    const Distribution first{shape, {{{whole}, {0}}}};
    const auto from_one = Workload::of({{parameter, first, {all}, {{0, 0, 2}}}}, 1, 2, 2);
    EXPECT_EQ(broken_rules(from_one, whole, {{0, 1, kNone}, {1, 2, 0}, {1, 3, 0}}), Rules{});
    EXPECT_EQ(broken_rules(from_one, whole, {{0, 1, kNone}, {0, 1, kNone}, {1, 2, 0}, {1, 3, 1}}),
              Rules{"message-twice"});
    EXPECT_EQ(broken_rules(from_one, whole, {{0, 1, kNone}, {0, 2, kNone}, {2, 3, 1}}), Rules{"needless"});
}

TEST(CheckPlan, RefusesPartsBeyondTheirSlice) {
    auto plan = planned(Method::kOptimal);
    plan.stages.front().relays.parts.front().first_tensor = 1;
    EXPECT_EQ(check_plan(plan, rows_to_columns(), four_ranks()).front().rule, "part-tensors");
}

TEST(CheckPlan, TakesPaddingInGathersAndNowhereElse) {
    // 2 tensors x 16 elements x 2 bytes: 64.
    auto plan = planned(Method::kGatherBroadcast);
    auto& gathered = plan.stages[0].collectives[0].bytes[0];
    auto& broadcast = plan.stages[1].collectives[0].bytes[0];
    ASSERT_EQ(gathered, 64U);
    gathered = 128;
    EXPECT_EQ(testing_support::fault_lines(check_plan(plan, rows_to_columns(), four_ranks())), "");
    gathered = 63;
    broadcast = 65;
    EXPECT_EQ(
        testing_support::fault_lines(check_plan(plan, rows_to_columns(), four_ranks())),
        "collective-bytes: gather-broadcast, stage 0 (gather), rank 0: its group says 63 bytes and moves 64\n"
        "collective-bytes: gather-broadcast, stage 1 (broadcast), rank 0: its group says 65 bytes and moves "
        "64\n");
}

TEST(CheckPlan, FindsDistributionsThatAreNone) {
    const std::vector<std::uint64_t> shape{4};
    const auto whole = Box::whole(shape);
    ParameterClass parameter;
    parameter.name = "bias";
    parameter.shape = shape;
    const Distribution source{shape, {{{whole}, {0}}}};
    const auto rules = [&](const Distribution& destination) {
        const auto workload = Workload::of({{parameter, source, {destination}, {{0, 0, 1}}}}, 1, 2, 2);
        std::string text;
        for (const auto& fault : check_plan({}, workload, four_ranks())) {
            text += fault.rule + " ";
        }
        return text;
    };
    EXPECT_EQ(rules({shape, {{{whole}, {0, 1}}}}), "missing missing ");
    EXPECT_EQ(rules({shape, {{{whole, whole}, {0}}}}), "missing ambiguous ");
    EXPECT_EQ(rules({shape, {{{whole.with(0, {0, 2})}, {1}}, {{whole.with(0, {2, 4})}, {1}}}}),
              "workload-member ");
    EXPECT_EQ(rules({shape, {{{whole.with(0, {0, 5})}, {0}}}}), "workload-box ");
    EXPECT_EQ(rules({{2, 2}, {}}), "workload-shape ");
}

TEST(CheckPlan, StopsAtAHundredFaults) {
    const auto scenario = shipped_scenario("qwen3-235b-h100");
    const auto workload = Workload::make(scenario);
    EXPECT_EQ(check_plan({}, workload, scenario.cluster).size(), 100U);
}

std::vector<std::string> scenario_names() {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::directory_iterator{std::filesystem::path{REFIT_DATA_DIR} / "scenarios"}) {
        names.push_back(entry.path().stem().string());
    }
    std::ranges::sort(names);
    return names;
}

std::string test_name(const testing::TestParamInfo<std::tuple<std::string, Method>>& info) {
    auto name = std::get<0>(info.param) + "_" + std::string{name_of(std::get<1>(info.param))};
    std::ranges::replace_if(
        name, [](char c) { return c == '-' || c == '.'; }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Shipped,
                         ShippedPlan,
                         testing::Combine(testing::ValuesIn(scenario_names()),
                                          testing::Values(Method::kGatherBroadcast,
                                                          Method::kHybrid,
                                                          Method::kDirect,
                                                          Method::kStriped,
                                                          Method::kOptimal)),
                         test_name);

}  // namespace
}  // namespace refit
