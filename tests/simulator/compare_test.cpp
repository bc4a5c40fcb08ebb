// SPDX-License-Identifier: Apache-2.0
#include "refit/compare.hpp"

#include <random>

#include <gtest/gtest.h>

#include "../shipped.hpp"

namespace refit {
namespace {

Report report_of(const Scenario& scenario) {
    static const auto published = shipped_library().published().value();
    CompareRequest request;
    request.published = published;
    return compare(scenario, request);
}

TEST(Compare, ThePublishedScenariosAreMetWithin20PercentByOneSetOfConstants) {
    for (const auto* name : {"qwen3-235b-h100", "deepseek-v3-h100", "deepseek-v3-gb200", "nemotron-ultra-gb200"}) {
        const auto report = report_of(shipped_scenario(name));
        for (const auto method : {Method::kGatherBroadcast, Method::kHybrid}) {
            const auto* entry = report.find(method);
            ASSERT_NE(entry, nullptr);
            ASSERT_TRUE(entry->published.has_value()) << name;
            EXPECT_NEAR(entry->seconds / *entry->published->seconds, 1.0, 0.2) << name << " " << name_of(method);
            EXPECT_LE(entry->low, entry->seconds);
            EXPECT_GE(entry->high, entry->seconds);
        }
    }
}

TEST(Compare, APublishedSpreadIsThatOfAllRecordsOfTheSameRefit) {
    // The post's 2.6 s and the guide's 2.39-2.83 s are one configuration; 2.66 s lies inside.
    const auto report = report_of(shipped_scenario("deepseek-v3-h100"));
    const auto& published = *report.find(Method::kHybrid)->published;
    EXPECT_EQ(published.id, "post-dsv3-h100-reshard");
    EXPECT_EQ(published.low->value(), 2.39);
    EXPECT_EQ(published.high->value(), 2.83);
    EXPECT_EQ(published.error, 0.0);
}

TEST(Compare, AnErrorIsRelativeToTheNearerEnd) {
    // 235B broadcast: 6.0 s against 6.4 s published.
    const auto report = report_of(shipped_scenario("qwen3-235b-h100"));
    const auto* entry = report.find(Method::kGatherBroadcast);
    EXPECT_NEAR(entry->published->error, entry->seconds.value() / 6.4 - 1.0, 1e-12);
    EXPECT_LT(entry->published->error, 0.0);
}

TEST(Compare, KimiK3ShowsTheCoverageByMeaningBesideTheNameRule) {
    // The name rule finds the dense layer and the latent projections: 0.2 % of the bytes; by meaning 97.97 %.
    const auto report = report_of(shipped_scenario("kimi-k3-h100"));
    EXPECT_NEAR(report.bulk_fraction, 0.0020, 0.0001);
    EXPECT_NEAR(report.ffn_fraction, 0.9797, 0.0001);
    ASSERT_TRUE(report.hybrid_by_meaning.has_value());
    EXPECT_LT(report.hybrid_by_meaning->seconds, report.find(Method::kHybrid)->seconds);
    EXPECT_EQ(report.trials.front().change.value, "ffn");
}

TEST(Compare, SuggestsTheFewestStreamsThatHelp) {
    // DeepSeek-V3 on H100: the receiver binds from the third stream on.
    const auto report = report_of(shipped_scenario("deepseek-v3-h100"));
    ASSERT_FALSE(report.trials.empty());
    const auto& trial = report.trials.front();
    EXPECT_EQ(trial.change.field, "engine.options.NRL_REFIT_NUM_STREAMS");
    EXPECT_EQ(trial.change.value, "3");
    EXPECT_EQ(trial.extra_bytes, 256 * 64 * 7168 * 2);  // one more region on a receiver
    const auto tried = report_of(shipped_scenario("deepseek-v3-h100", {{trial.change.field, trial.change.value}}));
    EXPECT_NEAR(tried.find(Method::kHybrid)->seconds.value(), trial.after.value(), 1e-12);
}

TEST(Compare, AStepIsSpedUpByWhatReshardSaves) {
    auto scenario = shipped_scenario("deepseek-v3-h100");
    CompareRequest request;
    request.steps = {Seconds{60.0}};
    const auto report = compare(scenario, request);
    const auto saved = report.find(Method::kGatherBroadcast)->seconds - report.find(Method::kHybrid)->seconds;
    ASSERT_EQ(report.steps.size(), 1U);
    EXPECT_NEAR(report.steps[0].speedup_at_most, 60.0 / (60.0 - saved.value()), 1e-12);
    EXPECT_NEAR(report.steps[0].refit_share, report.find(Method::kGatherBroadcast)->seconds.value() / 60.0, 1e-12);
}

TEST(Compare, NoTransferBeatsTheBoundOnRandomLayouts) {
    std::mt19937 random{7};
    const auto library = shipped_library();
    const auto pick = [&](std::initializer_list<const char*> options) {
        return std::string{*(options.begin() + std::uniform_int_distribution<std::ptrdiff_t>{0, static_cast<std::ptrdiff_t>(options.size()) - 1}(random))};
    };
    int resolved = 0;
    for (int i = 0; i < 200; ++i) {
        auto draft = library.scenario("deepseek-v3-h100").value();
        draft.apply({"model", pick({"deepseek-v3", "qwen3-30b-a3b", "nemotron-3-nano-30b-a3b"}), ""});
        draft.apply({"system", pick({"h100-nvl8", "gb200-nvl72", "b200-nvl8"}), ""});
        draft.apply({"train.layout", pick({"tp1", "tp2", "tp4"}) + pick({".pp1", ".pp2", ".pp4"}) + pick({".ep1", ".ep4", ".ep8"}), ""});
        draft.apply({"generate.layout", pick({"tp1", "tp2", "tp8", "tp16"}) + pick({"", ".pp2"}), ""});
        draft.apply({"train.gpus", pick({"32", "64", "96"}), ""});
        draft.apply({"generate.gpus", pick({"16", "32", "64"}), ""});
        draft.apply({"placement.generation_starts_new_domain", pick({"true", "false"}), ""});
        const auto scenario = io::resolve(draft, library);
        if (!scenario) {
            continue;
        }
        ++resolved;
        CompareRequest request;
        request.has_simulation = i % 4 == 0;
        const auto report = compare(*scenario, request);
        for (const auto& method : report.methods) {
            if (method.refused.empty()) {
                ASSERT_EQ(method.simulated.has_value(), request.has_simulation);
                const auto moved = method.simulated ? method.simulated->transfer : method.transfer;
                EXPECT_LE(report.bound.time.value(), moved.value() * (1.0 + 1e-9)) << name_of(method.method);
                EXPECT_LE(moved, method.simulated ? method.simulated->seconds * (1.0 + 1e-9) : method.seconds + Seconds{1e-9});
                EXPECT_LE(report.bound.time.value(), method.transfer.value() * (1.0 + 1e-9))
                    << name_of(method.method) << " " << to_text(scenario->train) << " -> " << to_text(scenario->generate)
                    << " " << scenario->model.id() << " " << scenario->cluster.train_system().name << " "
                    << name_of(report.bound.kind) << " " << report.bound.where;
                EXPECT_LE(method.transfer.value(), method.seconds.value() + 1e-9);
            }
        }
    }
    EXPECT_GT(resolved, 100);
}

TEST(Compare, SimulatesWhereAskedTo) {
    const auto scenario = shipped_scenario("reshard-two-domains");
    CompareRequest request;
    request.methods = {Method::kDirect};
    EXPECT_FALSE(compare(scenario, request).methods[0].simulated.has_value());
    request.has_simulation = true;
    const auto method = compare(scenario, request).methods[0];
    EXPECT_TRUE(method.kind == ReportKind::kSimulate);
    // 16 x 2,147,483,648 B by each trainer's NIC at 47 GB/s; control 0.146 s, one post of 0.33 ms.
    const auto moving = 16.0 * 2'147'483'648.0 / 47e9;
    EXPECT_NEAR(method.simulated->transfer.value(), moving, 1e-9);
    EXPECT_NEAR(method.simulated->seconds.value(), 0.146 + 0.33e-3 + moving, 1e-9);
    request.is_cancelled = [] { return true; };
    EXPECT_FALSE(compare(scenario, request).methods[0].simulated.has_value());
}

}  // namespace
}  // namespace refit
