// SPDX-License-Identifier: Apache-2.0
// Plans from trainers that run FSDP: what gather-broadcast gathers, and that every method delivers.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "../model/small_models.hpp"
#include "../shipped.hpp"
#include "element_run.hpp"
#include "fault_lines.hpp"
#include "random_refit.hpp"
#include "refit/check.hpp"
#include "refit/holdings.hpp"
#include "refit/layout_check.hpp"
#include "refit/memory.hpp"
#include "refit/methods.hpp"

namespace refit {
namespace {

using testing_support::Dice;
using Changes = std::initializer_list<std::pair<std::string, std::string>>;

struct PlannedFsdp {
    Scenario scenario;
    Workload workload;
    Plan plan;

    [[nodiscard]] const PlanStage& gather() const { return plan.stages.at(0); }
    [[nodiscard]] const RankGroups& groups(std::size_t collective) const {
        return plan.groups.at(gather().collectives.at(collective).groups);
    }
};

PlannedFsdp gathered(const std::string& model, const std::string& train, const std::string& generate) {
    auto scenario = shipped_scenario(
        "reshard-two-domains", {{"model", model}, {"train.layout", train}, {"generate.layout", generate}});
    auto workload = Workload::make(scenario);
    auto plan = make_plan(Method::kGatherBroadcast, scenario, workload).value();
    EXPECT_EQ(testing_support::fault_lines(check_plan(plan, workload, scenario.cluster)), "");
    return {std::move(scenario), std::move(workload), std::move(plan)};
}

std::vector<std::uint32_t> indices(const std::vector<RankId>& group) {
    std::vector<std::uint32_t> ranks;
    for (const auto rank : group) {
        ranks.push_back(rank.index());
    }
    return ranks;
}

TEST(FsdpGather, RestoresEachTensorByAnAllGatherOfItsOwn) {
    // Qwen3-8B: 8,190,735,360 parameters in 399 tensors, all of whose first dims 16 divides: 151936, 4096,
    // 1024, 12288, 128.
    const auto made = gathered("qwen3-8b", "fsdp16@16", "tp2@16");
    ASSERT_EQ(made.gather().collectives.size(), 1U);
    const auto& all_gather = made.gather().collectives[0];
    EXPECT_EQ(all_gather.role, CollectiveRole::kTensorAllGather);
    EXPECT_EQ(all_gather.bytes, (std::vector<std::uint64_t>{2 * 8'190'735'360U}));
    EXPECT_EQ(all_gather.calls, 399U);
    EXPECT_EQ(made.groups(0).size(), 1U);
    EXPECT_EQ(made.groups(0)[0].size(), 16U);
    // Rows arrive in their place, so every byte is copied once: into a pack.
    EXPECT_EQ(made.gather().copied, Bytes{2 * 8'190'735'360U});
    EXPECT_EQ(made.gather().loaded_tensors, 399U);
}

TEST(FsdpGather, StaysWithinEachReplica) {
    const auto made = gathered("qwen3-8b", "fsdp8@16", "tp2@16");
    const auto& all_gather = made.gather().collectives.at(0);
    EXPECT_EQ(all_gather.bytes, (std::vector<std::uint64_t>(2, 2 * 8'190'735'360U)));
    ASSERT_EQ(made.groups(0).size(), 2U);
    EXPECT_EQ(indices(made.groups(0)[1]), (std::vector<std::uint32_t>{8, 9, 10, 11, 12, 13, 14, 15}));
}

TEST(FsdpGather, PadsTheLastChunks) {
    // 24 ranks, with R the rows of 4096 columns and so on, padded to multiples of 24: 151936 -> 151944 (2 of
    // these), 4096 -> 4104, 1024 -> 1032, 12288 as it is, 128 -> 144. Per layer: q 4104·4096, k and v
    // 2·1032·4096, o 4104·4096, gate and up 2·12288·4096, down 4104·12288, norms 2·4104 + 2·144. Outside:
    // 2·151944·4096 + 4104.
    const std::uint64_t layer = 2 * (4104U * 4096U) + 2 * (1032U * 4096U) + 2 * (12288U * 4096U) +
                                4104U * 12288U + 2 * 4104U + 2 * 144U;
    const std::uint64_t all = 36 * layer + 2 * (151944U * 4096U) + 4104U;
    const auto made = gathered("qwen3-8b", "fsdp24@24", "tp2@16");
    EXPECT_EQ(made.gather().collectives.at(0).bytes, (std::vector<std::uint64_t>{2 * all}));
}

TEST(FsdpGather, GathersStackedExpertsOverTheirFsdpRanksAndThenOverEp) {
    // Qwen3-30B-A3B: experts are 48 · 128 · 3 · 768 · 2048 = 28,991,029,248 parameters, the rest
    // 1,541,093,376 in 18867 - 18432 = 435 tensors.
    constexpr std::uint64_t kExpertBytes = 2 * 28'991'029'248U;
    const auto made = gathered("qwen3-30b-a3b", "ep8.fsdp2@16", "tp2@16");
    ASSERT_EQ(made.gather().collectives.size(), 3U);
    const auto& dense = made.gather().collectives[0];
    EXPECT_EQ(dense.bytes, (std::vector<std::uint64_t>{2 * 1'541'093'376U}));
    EXPECT_EQ(dense.calls, 435U);
    // Ranks with one place in EP: an eighth of the experts, three stacked tensors a layer.
    const auto& stacked = made.gather().collectives[1];
    EXPECT_EQ(stacked.role, CollectiveRole::kTensorAllGather);
    EXPECT_EQ(stacked.bytes, (std::vector<std::uint64_t>(8, kExpertBytes / 8)));
    EXPECT_EQ(stacked.calls, 144U);
    EXPECT_EQ(indices(made.groups(1)[3]), (std::vector<std::uint32_t>{3, 11}));
    const auto& experts = made.gather().collectives[2];
    EXPECT_EQ(experts.role, CollectiveRole::kExpertAllGather);
    EXPECT_EQ(experts.bytes, (std::vector<std::uint64_t>(2, kExpertBytes)));
    EXPECT_EQ(experts.calls, 144U);
    EXPECT_EQ(indices(made.groups(2)[1]), (std::vector<std::uint32_t>{8, 9, 10, 11, 12, 13, 14, 15}));
    // Packed once, unpacked from EP once, and concatenated from FSDP once.
    EXPECT_EQ(made.gather().copied,
              Bytes{2 * 1'541'093'376U + kExpertBytes + kExpertBytes + kExpertBytes / 8});
}

TEST(FsdpGather, GathersEachExpertByItselfWithoutEp) {
    const auto made = gathered("qwen3-30b-a3b", "fsdp16@16", "tp2@16");
    ASSERT_EQ(made.gather().collectives.size(), 1U);
    EXPECT_EQ(made.gather().collectives[0].calls, 18867U);
    EXPECT_EQ(made.gather().collectives[0].bytes, (std::vector<std::uint64_t>{2 * 30'532'122'624U}));
}

TEST(FsdpGather, NeedsNoneWhereEveryTrainerHasAll) {
    const auto made = gathered("qwen3-0.6b", "fsdp1@2", "tp2@2");
    EXPECT_TRUE(made.gather().collectives.empty());
}

TEST(FsdpMemory, HoldsAllStackedExpertsBesideAPack) {
    // One stacked projection: 128 · 768 · 2048 · 2 B, the expert that closes the pack excepted.
    const auto made = gathered("qwen3-30b-a3b", "ep8.fsdp2@16", "tp2@16");
    const auto account = account_memory(made.plan, made.scenario, made.workload);
    const auto is_output = [](const MemoryUse& use) { return use.cause == MemoryCause::kGatherOutput; };
    const auto& uses = account.train.at(0).uses;
    const auto output = std::ranges::find_if(uses, is_output);
    ASSERT_NE(output, uses.end());
    EXPECT_EQ(output->bytes, Bytes{127U * 768U * 2048U * 2U});
}

TEST(FsdpHoldings, HaveNoPaddedVocabulary) {
    const auto made = gathered("qwen3-8b", "fsdp24@24", "tp2@16");
    const auto summary = summarise_layout(made.scenario, made.workload);
    EXPECT_EQ(summary.train.padding, Bytes{});
    EXPECT_EQ(summary.train.all, Bytes{2 * 8'190'735'360U});
    EXPECT_EQ(summary.train.replicated, Bytes{});
}

TEST(FsdpMethods, RefuseReshardByTheRuleForMegatronAndOfferALayout) {
    auto scenario = shipped_scenario(
        "reshard-two-domains",
        {{"model", "qwen3-30b-a3b"}, {"train.layout", "ep8.fsdp2@16"}, {"generate.layout", "tp2@16"}});
    const auto plan = make_plan(Method::kHybrid, scenario, Workload::make(scenario));
    ASSERT_FALSE(plan.has_value());
    ASSERT_EQ(plan.error().size(), 1U) << testing_support::fault_lines(plan.error());
    EXPECT_EQ(plan.error()[0].where, "train.engine");
    const auto nearest = plan.error()[0].nearest.value();
    EXPECT_EQ(nearest, (Suggestion{"train.layout", "ep8@16", ""}));
    scenario = shipped_scenario(
        "reshard-two-domains",
        {{"model", "qwen3-30b-a3b"}, {nearest.field, nearest.value}, {"generate.layout", "tp2@16"}});
    EXPECT_TRUE(make_plan(Method::kHybrid, scenario, Workload::make(scenario)).has_value());
}

/// A random layout of FSDP and one of generation for a small model, on a cluster of random domains.
Scenario random_scenario(Dice& dice, const std::string& model) {
    auto scenario = shipped_scenario("reshard-one-domain");
    scenario.model = testing_models::shrunken(model).model;
    LayoutText train;
    train.fsdp = static_cast<std::uint32_t>(dice.between(1, 6));
    const auto experts = scenario.model.experts();
    train.ep = experts == 0 ? 1 : static_cast<std::uint32_t>(dice.between(1, 4));
    while (experts % *train.ep != 0) {
        train.ep = *train.ep - 1;
    }
    const auto trainers = *train.fsdp * *train.ep * static_cast<std::uint32_t>(dice.between(1, 3));
    scenario.train = make_train_layout(train, trainers, scenario.model).value();
    LayoutText generate;
    generate.tp = dice.once_in(2) ? 2 : 4;
    generate.pp = static_cast<std::uint32_t>(dice.between(1, 2));
    const auto generators = *generate.tp * *generate.pp * static_cast<std::uint32_t>(dice.between(1, 3));
    scenario.generate = make_generate_layout(generate, generators, scenario.model).value();
    Placement placement;
    placement.train_gpus_per_domain = static_cast<std::uint32_t>(dice.between(1, 8));
    placement.generate_gpus_per_domain = static_cast<std::uint32_t>(dice.between(1, 8));
    placement.generation_starts_new_domain = true;
    scenario.cluster = Cluster{
        scenario.cluster.train_system(), scenario.cluster.generate_system(), trainers, generators, placement};
    scenario.engine.options.broadcast_senders = static_cast<std::uint32_t>(dice.between(1, trainers));
    scenario.engine.options.broadcast_group =
        dice.once_in(2) ? BroadcastGroup::kAll : BroadcastGroup::kGenerators;
    scenario.rules = {};
    return scenario;
}

class RandomFsdp : public testing::TestWithParam<const char*> {};

/// Checker and element run know nothing of layouts: only who holds and who wants what.
TEST_P(RandomFsdp, PassesTheCheckerAndDeliversForEveryMethod) {
    int moved_by_m2n = 0;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
        Dice dice{seed};
        const auto scenario = random_scenario(dice, GetParam());
        const auto workload = Workload::make(scenario);
        for (const auto method : {Method::kGatherBroadcast,
                                  Method::kHybrid,
                                  Method::kDirect,
                                  Method::kStriped,
                                  Method::kM2n,
                                  Method::kOptimal}) {
            const auto where = std::string{name_of(method)} + ", seed " + std::to_string(seed) + ": " +
                               describe(scenario.train);
            const auto plan = make_plan(method, scenario, workload);
            if (!plan) {
                // M2N takes even shards alone.
                ASSERT_EQ(method, Method::kM2n) << where << "\n"
                                                << testing_support::fault_lines(plan.error());
                continue;
            }
            moved_by_m2n += method == Method::kM2n ? 1 : 0;
            ASSERT_EQ(testing_support::fault_lines(check_plan(*plan, workload, scenario.cluster)), "")
                << where;
            ASSERT_EQ(testing_support::run_elements(*plan, workload, scenario.cluster), "") << where;
        }
    }
    EXPECT_LT(moved_by_m2n, 12);
}

INSTANTIATE_TEST_SUITE_P(Models,
                         RandomFsdp,
                         testing::Values("qwen3-30b-a3b",
                                         "qwen3-4b",
                                         "qwen2.5-7b",
                                         "glm-z1-9b",
                                         "moonlight-16b-a3b",
                                         "glm-4.5-air",
                                         "qwen3.5-27b"),
                         [](const auto& test) { return testing_models::test_name(test.param); });

}  // namespace
}  // namespace refit
