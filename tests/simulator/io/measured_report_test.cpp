// SPDX-License-Identifier: Apache-2.0
#include "refit/io/measured_report.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "../../shipped.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;

/// A report as a run would leave it, with a scenario as reports resolve it.
Json measured() {
    return Json::parse(R"({"schema": "refit.report", "schema_version": "1.0",
 "scenario": {"name": "mine", "note": "", "model": "qwen3-4b", "dtype": "bf16", "published": ["x"],
  "train": {"engine": "megatron", "gpus": 8, "layout": "tp1", "dp": 8, "stage_layers": [36]},
  "generate": {"engine": "vllm", "gpus": 8, "layout": "tp8.dp1", "dtype": "bf16"},
  "system": {"train": "h100-nvl8", "generate": "h100-nvl8"},
  "engine": {"name": "nemo-rl", "version": "2026-08", "options": {"NRL_REFIT_NUM_STREAMS": 2}}},
 "methods": [{"method": "hybrid", "kind": "measured", "seconds": 0.3, "seconds_low": 0.28, "seconds_high": 0.33},
             {"method": "direct", "kind": "estimate", "seconds": 1.0}]})");
}

Result<std::vector<ValidationCase>> read(const Json& report) {
    const auto file = std::filesystem::path{testing::TempDir()} / ("measured-" + std::to_string(::getpid()) + ".json");
    std::ofstream{file} << report.dump();
    auto result = read_measured_report(file, shipped_library());
    std::filesystem::remove(file);
    return result;
}

bool mentions(const Faults& faults, const std::string& text) {
    for (const auto& fault : faults) {
        if (fault.message.find(text) != std::string::npos || fault.where.find(text) != std::string::npos) {
            return true;
        }
    }
    return false;
}

TEST(MeasuredReport, IsARecordWithItsScenario) {
    const auto cases = read(measured());
    ASSERT_TRUE(cases.has_value()) << cases.error().front().message;
    ASSERT_EQ(cases->size(), 1U) << "estimates are no times";
    const auto& one = cases->front();
    EXPECT_EQ(one.record.engine, "nemo-rl-reshard");
    EXPECT_TRUE(one.record.id.ends_with("#hybrid")) << one.record.id;
    EXPECT_EQ(one.record.seconds, Seconds{0.3});
    EXPECT_EQ(one.record.low, Seconds{0.28});
    EXPECT_EQ(one.record.high, Seconds{0.33});
    ASSERT_TRUE(one.scenario.has_value());
    EXPECT_EQ(one.scenario->model.id(), "qwen3-4b");
    EXPECT_EQ(one.scenario->generate.tp, 8U);
    const auto refits = timed_refits(*cases);
    ASSERT_EQ(refits.size(), 1U);
    EXPECT_EQ(refits[0].weight, 1.0);
    EXPECT_EQ(refits[0].high, Seconds{0.33});
}

TEST(MeasuredReport, RefusesWhatIsNoMeasuredRefit) {
    EXPECT_TRUE(mentions(read(Json::object()).error(), "refit.report"));
    auto estimate = measured();
    estimate["methods"][0]["kind"] = "estimate";
    EXPECT_TRUE(mentions(read(estimate).error(), "no entry is of kind \"measured\""));
    auto other = measured();
    other["methods"][0]["method"] = "striped";
    EXPECT_TRUE(mentions(read(other).error(), "'striped' is not among what an engine is fitted to"));
    auto never = measured();
    never["methods"][0]["seconds"] = -1;
    EXPECT_TRUE(mentions(read(never).error(), "/methods/0/seconds"));
    auto swapped = measured();
    swapped["methods"][0]["seconds_low"] = 0.5;
    EXPECT_TRUE(mentions(read(swapped).error(), "above seconds_high"));
    auto unknown = measured();
    unknown["scenario"]["model"] = "qwen3-5b";
    EXPECT_TRUE(mentions(read(unknown).error(), "qwen3-5b"));
    EXPECT_EQ(read_measured_report("no-such-file", shipped_library()).error()[0].code, ErrorCode::kIo);
}

TEST(MeasuredReport, TakesChangesOverTheScenarioAsThePlanDid) {
    // The scenario's stages are for pp2, which the change of the layout lifts; a model of an eighth of the widths.
    auto report = measured();
    report["scenario"] = {{"name", "mine"},           {"model", "qwen3-4b"},  {"train.gpus", "8"},   {"train.layout", "pp2"},
                          {"train.pipeline.first", "17"}, {"generate.gpus", "8"}, {"generate.layout", "tp8"}, {"system", "h100-nvl8"}};
    report["changes"] = {{"model", "qwen3-4b/8"}, {"train.layout", "tp2"}};
    const auto cases = read(report);
    ASSERT_TRUE(cases.has_value()) << cases.error()[0].message;
    EXPECT_EQ((*cases)[0].record.model, "qwen3-4b/8");
    EXPECT_EQ((*cases)[0].scenario->cluster.train_gpus(), 8U);

    report.erase("changes");
    EXPECT_EQ(read(report).value()[0].record.model, "qwen3-4b");
}

}  // namespace
}  // namespace refit::io
