// SPDX-License-Identifier: Apache-2.0
#include "refit/validate.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../shipped.hpp"
#include "refit/io/published_scenario.hpp"
#include "refit/io/validation_json.hpp"
#include "refit/workload.hpp"

namespace refit {
namespace {

const std::vector<PublishedRecord>& shipped_records() {
    static const auto records = shipped_library().published().value();
    return records;
}

ValidationCase case_of(const PublishedRecord& record) {
    auto made = io::scenario_of(record, shipped_records(), shipped_library());
    return made ? ValidationCase{record, made->scenario, "", made->assumed}
                : ValidationCase{record, std::nullopt, made.error().front().message, {}};
}

std::vector<ValidationCase> cases_of(const std::set<std::string>& ids) {
    std::vector<ValidationCase> cases;
    for (const auto& record : shipped_records()) {
        if (ids.empty() || ids.contains(record.id)) {
            cases.push_back(case_of(record));
        }
    }
    return cases;
}

const Validation& shipped_validation() {
    static const auto validation = validate(cases_of({}), shipped_records());
    return validation;
}

const ValidationRow& row_of(const Validation& validation, const std::string& id) {
    return *std::ranges::find_if(validation.rows,
                                 [&](const ValidationRow& row) { return row.record.id == id; });
}

/// A small refit with the given published times, 8 to 8 GPUs: quick to predict.
ValidationCase small(const std::string& id,
                     std::optional<double> seconds,
                     std::optional<double> low = {},
                     std::optional<double> high = {}) {
    auto one = case_of(
        *std::ranges::find(shipped_records(), std::string{"nemo-reshard-doc-4b"}, &PublishedRecord::id));
    const auto time = [](std::optional<double> value) {
        return value ? std::optional{Seconds{*value}} : std::nullopt;
    };
    one.record.id = id;
    one.record.seconds = time(seconds);
    one.record.low = time(low);
    one.record.high = time(high);
    one.record.served_to_fit = false;
    return one;
}

TEST(Validate, AnErrorIsNoneInsideARangeAndElseRelativeToItsNearerEnd) {
    EXPECT_EQ(error_beside(Seconds{2.0}, Seconds{1.0}, Seconds{2.0}), 0.0);
    EXPECT_EQ(error_beside(Seconds{1.0}, Seconds{1.0}, Seconds{2.0}), 0.0);
    EXPECT_DOUBLE_EQ(error_beside(Seconds{0.8}, Seconds{1.0}, Seconds{2.0}), -0.2);  // 0.8 / 1 - 1.
    EXPECT_DOUBLE_EQ(error_beside(Seconds{2.5}, Seconds{1.0}, Seconds{2.0}), 0.25);  // 2.5 / 2 - 1.
}

TEST(Validate, RecordsOfOneRefitShareTheUnionOfTheirRanges) {
    // 2.6 s and 2.39-2.83 s are one refit, and so are 14.21 s and 15.52 s; 14.9 s has more generators.
    for (const auto* id : {"post-dsv3-h100-reshard", "nemo-reshard-doc-dsv3-h100"}) {
        EXPECT_EQ(row_of(shipped_validation(), id).low, Seconds{2.39}) << id;
        EXPECT_EQ(row_of(shipped_validation(), id).high, Seconds{2.83}) << id;
    }
    EXPECT_EQ(row_of(shipped_validation(), "post-dsv3-h100-reshard").record.seconds, Seconds{2.6});
    EXPECT_EQ(row_of(shipped_validation(), "nemo-ckpteng-dsv3-nccl-async").high, Seconds{15.52});
    EXPECT_EQ(row_of(shipped_validation(), "nemo-ckpteng-dsv3-nccl-sync").low, Seconds{14.21});
    EXPECT_EQ(row_of(shipped_validation(), "post-dsv3-h100-broadcast").low, Seconds{14.9});
    // The guide gives no split of the layers for GB200; it is the post's.
    EXPECT_EQ(row_of(shipped_validation(), "nemo-reshard-doc-dsv3-gb200").configuration,
              row_of(shipped_validation(), "post-dsv3-gb200-reshard").configuration);
    // Another engine on the same machines is another refit.
    EXPECT_NE(row_of(shipped_validation(), "post-dsv3-gb200-broadcast").configuration,
              row_of(shipped_validation(), "post-dsv3-gb200-reshard").configuration);
}

TEST(Validate, TheFileLinksTheRecordsThatResolveToOneRefit) {
    std::map<std::size_t, std::set<std::string>> refits;
    for (const auto& row : shipped_validation().rows) {
        if (row.prediction) {
            refits[row.configuration].insert(row.record.id);
        }
    }
    for (const auto& row : shipped_validation().rows) {
        if (row.prediction) {
            std::set<std::string> linked{row.record.same_configuration_as.begin(),
                                         row.record.same_configuration_as.end()};
            linked.insert(row.record.id);
            EXPECT_EQ(linked, refits.at(row.configuration)) << row.record.id;
        }
    }
}

TEST(Validate, OneFigureIsBothEndsAndAMissingEndIsTheFigure) {
    const std::vector cases{small("figure", 0.5)};
    const auto one = validate(cases, {}).rows[0];
    EXPECT_EQ(one.low, Seconds{0.5});
    EXPECT_EQ(one.high, Seconds{0.5});
    const std::vector open{small("open", 0.5, std::nullopt, 0.9)};
    EXPECT_EQ(validate(open, {}).rows[0].low, Seconds{0.5});
    EXPECT_EQ(validate(open, {}).rows[0].high, Seconds{0.9});
    const std::vector silent{small("silent", std::nullopt)};
    const auto none = validate(silent, {});
    EXPECT_TRUE(none.rows[0].prediction.has_value());
    EXPECT_FALSE(none.rows[0].error.has_value());
    EXPECT_EQ(none.all.rows, 0U);
    EXPECT_EQ(none.modelled, 1U);
}

TEST(Validate, SummariesAreThoseOfTheRows) {
    // Three refits (other streams, same time) with 1/2, 1/1 and 1/0.8 of the prediction as published figure:
    // errors +100 %, 0 and -20 %; median 20 %, worst +100 %.
    const auto predicted = validate(std::vector{small("p", 1.0)}, {}).rows[0].prediction.value();
    const auto p = predicted.seconds.value();
    std::vector<ValidationCase> cases{small("double", p / 2.0), small("exact", p), small("low", p / 0.8)};
    cases[1].scenario->engine.options.streams = 3;
    cases[2].scenario->engine.options.streams = 4;
    cases[2].record.served_to_fit = true;
    const auto validation = validate(cases, {});
    EXPECT_NEAR(*validation.rows[0].error, 1.0, 1e-12);
    EXPECT_NEAR(*validation.rows[2].error, -0.2, 1e-12);
    const auto& all = validation.all;
    EXPECT_EQ(all.modelled, 3U);
    EXPECT_EQ(all.configurations, 3U);
    EXPECT_EQ(all.served_to_fit, 1U);
    EXPECT_NEAR(all.median_error, 0.2, 1e-12);
    EXPECT_NEAR(all.worst_error, 1.0, 1e-12);
    EXPECT_EQ(all.worst_id, "double");
    EXPECT_NEAR(all.median_half_width, (predicted.high - predicted.low) / predicted.seconds / 2.0, 1e-12);
    // Half of the prediction lies below its range; the figure itself inside.
    EXPECT_GT(predicted.low.value(), p / 2.0);
    const auto inside = predicted.high.value() >= p / 0.8 ? 1.0 : 0.0;
    EXPECT_NEAR(all.covered, (1.0 + inside) / 3.0, 1e-12);
    ASSERT_EQ(validation.groups.size(), 1U);
    EXPECT_EQ(validation.groups[0].engine, "nemo-rl-reshard");
}

TEST(Validate, ARecordWhosePlanIsRefusedSaysWhy) {
    auto one = small("pp", 1.0);
    one.scenario->facts.insert_or_assign("generate.pp", "2");
    const auto validation = validate(std::vector{one}, {});
    EXPECT_FALSE(validation.rows[0].prediction.has_value());
    EXPECT_NE(validation.rows[0].not_modelled.find("generation pipeline parallelism must be 1"),
              std::string::npos)
        << validation.rows[0].not_modelled;
    EXPECT_EQ(validation.modelled, 0U);
}

TEST(Validate, TheHeadlineFiguresAreMetWithin15Percent) {
    EXPECT_EQ(shipped_validation().headlines.rows, 8U);
    EXPECT_EQ(shipped_validation().headlines.modelled, 8U);
    EXPECT_LE(std::abs(shipped_validation().headlines.worst_error), 0.15);
    for (const auto& row : shipped_validation().rows) {
        if (row.record.is_headline && row.prediction) {
            EXPECT_LE(std::abs(*row.error), 0.15) << row.record.id;
        }
    }
}

TEST(Validate, ModelsEveryTimeOfNemoRlThatChangesNoDtypeAndSaysWhyNotOfAllOthers) {
    EXPECT_EQ(shipped_validation().rows.size(), 116U);
    std::size_t modelled = 0;
    std::set<std::size_t> configurations;
    for (const auto& row : shipped_validation().rows) {
        if (row.prediction && row.record.engine.starts_with("nemo-rl-")) {
            ++modelled;
            configurations.insert(row.configuration);
        }
    }
    EXPECT_EQ(modelled, 38U);
    // Seven pairs are one refit each: reshard of DeepSeek-V3 on H100 and on GB200, of Ultra, of 30B to TP8 and
    // in FP8, and the two timers of broadcast and of NIXL to 32 GPUs.
    EXPECT_EQ(configurations.size(), 31U);
    for (const auto& row : shipped_validation().rows) {
        EXPECT_EQ(row.prediction.has_value(), row.not_modelled.empty()) << row.record.id;
    }
}

TEST(Validate, TheCalculatorIsInterpolatedOverTheLogarithmOfTheSize) {
    // The middles of its anchors: 2.52 s at 470.2 GB, 3.365 s at 1342 GB. Without the guide's ranges: 2.52
    // / 1.9 is +33 %, 3.365 / 2.6 +29 % and 3.365 / 2.3 +46 %; Ultra, 1098.6 GB, 2.52 + 0.845 ln(2.336) /
    // ln(2.854) = 3.204 s, +39 %.
    const auto validation = validate(cases_of({"post-235b-h100-reshard",
                                               "post-dsv3-h100-reshard",
                                               "post-dsv3-gb200-reshard",
                                               "post-ultra-gb200-reshard"}),
                                     shipped_records());
    const auto& calculator = validation.baselines.at(0);
    EXPECT_EQ(calculator.name, "calculator");
    EXPECT_EQ(calculator.rows, 4U);
    EXPECT_NEAR(calculator.worst_error, 3.365 / 2.3 - 1.0, 0.002);
    EXPECT_NEAR(calculator.median_error, (2.52 / 1.9 + 3.204 / 2.3) / 2.0 - 1.0, 0.002);
    EXPECT_EQ(calculator.model_worst_error, validation.all.worst_error);
    EXPECT_TRUE(validate(cases_of({"post-235b-h100-reshard"}), {}).baselines.empty());
}

TEST(Validate, TheLineBySizeIsTheBestOneInLogarithms) {
    // Times on a line through three sizes: 1 s + bytes / (1000 GB/s) meets each.
    auto cases = cases_of({"nemo-reshard-doc-4b", "nemo-pr2971-30b-d", "post-235b-h100-reshard"});
    ASSERT_EQ(cases.size(), 3U);
    for (auto& one : cases) {
        const auto seconds = Seconds{1.0 + Workload::make(*one.scenario).payload_bytes().as_double() / 1e12};
        one.record.seconds = seconds;
        one.record.low.reset();
        one.record.high.reset();
    }
    const auto validation = validate(cases, {});
    ASSERT_EQ(validation.baselines.size(), 1U);
    EXPECT_EQ(validation.baselines[0].formula, "1.00 s + bytes / (1000 GB/s)");
    EXPECT_NEAR(validation.baselines[0].worst_error, 0.0, 2e-3);
}

TEST(Validate, BySimulationTheRangeIsTheClosedFormsInProportion) {
    const auto cases = cases_of({"nemo-reshard-doc-4b"});
    const auto estimated = validate(cases, {}).rows[0].prediction.value();
    ValidateOptions options;
    options.is_simulated = true;
    const auto validation = validate(cases, {}, options);
    const auto& simulated = validation.rows[0].prediction.value();
    EXPECT_TRUE(validation.is_simulated);
    EXPECT_NE(simulated.seconds, estimated.seconds);
    EXPECT_NEAR(simulated.low / simulated.seconds, estimated.low / estimated.seconds, 1e-12);
    EXPECT_NEAR(simulated.high / simulated.seconds, estimated.high / estimated.seconds, 1e-12);
    EXPECT_FALSE(simulated.limited_by.empty());
}

TEST(Validate, WhatServedToFitIsAlsoPredictedByConstantsThatHaveNotSeenIt) {
    const auto& ultra = row_of(shipped_validation(), "post-ultra-gb200-reshard");
    ASSERT_TRUE(ultra.served_to_fit && ultra.left_out && ultra.left_out_error);
    EXPECT_EQ(ultra.gpu, "GB200");
    EXPECT_LT(*ultra.left_out_error, *ultra.error - 0.05) << "no other refit finalises so many experts";
    EXPECT_LT(ultra.left_out->low, ultra.left_out->seconds);
    EXPECT_LT(ultra.left_out->seconds, ultra.left_out->high);
    // Records of one refit leave it out together.
    EXPECT_EQ(row_of(shipped_validation(), "nemo-reshard-doc-ultra-gb200").left_out->seconds, ultra.left_out->seconds);
    for (const auto& row : shipped_validation().rows) {
        EXPECT_EQ(row.left_out.has_value(), row.prediction.has_value()) << row.record.id;
        if (row.prediction && !row.served_to_fit) {
            EXPECT_EQ(row.left_out->seconds, row.prediction->seconds) << row.record.id;
            EXPECT_EQ(row.left_out_error, row.error) << row.record.id;
        }
    }
}

TEST(Validate, LeavesOutByTheRefitsThatItIsGiven) {
    // Alone, a shipped record knows its neighbours only where they are given.
    const auto fitted = cases_of({"nemo-reshard-doc-4b", "nemo-pr2971-30b-a", "nemo-pr2971-30b-c"});
    const auto alone = cases_of({"nemo-pr2971-30b-a"});
    ValidateOptions options;
    options.fitted = fitted;
    const auto with = validate(alone, {}, options).rows[0].left_out->seconds;
    EXPECT_EQ(with, row_of(validate(fitted, {}), "nemo-pr2971-30b-a").left_out->seconds);
    EXPECT_NE(with, validate(alone, {}).rows[0].left_out->seconds);
}

TEST(Validate, SummarisesWhatIsLeftOutByEngineAndGpu) {
    std::set<std::string> gpus;
    for (const auto& gpu : shipped_validation().gpus) {
        gpus.insert(gpu.engine);
        EXPECT_GT(gpu.left_out.median_half_width, 0.0);
        EXPECT_GE(std::abs(gpu.left_out.worst_error), gpu.left_out.median_error);
    }
    EXPECT_TRUE(gpus.contains("GB200") && gpus.contains("H100"));
    EXPECT_GE(shipped_validation().all.left_out.median_error, 0.0);
    EXPECT_FALSE(shipped_validation().all.left_out.worst_id.empty());
}

TEST(Validate, ItsJsonHasWhatWasAskedFor) {
    const auto json = io::to_json(shipped_validation());
    EXPECT_EQ(json.at("records").size(), 116U);
    const auto& first = json.at("records").front();
    EXPECT_EQ(first.at("id"), "post-235b-h100-broadcast");
    for (const auto* key : {"tier",
                            "engine",
                            "predicted_seconds",
                            "predicted_low",
                            "predicted_high",
                            "published_seconds",
                            "published_seconds_min",
                            "published_seconds_max",
                            "error",
                            "left_out_error",
                            "left_out_seconds",
                            "limited_by"}) {
        EXPECT_TRUE(first.contains(key)) << key;
    }
    EXPECT_FALSE(first.contains("not_modelled"));
    EXPECT_EQ(json.at("summary").at("headlines").at("modelled"), 8);
    const auto other = std::ranges::find_if(
        json.at("records"), [](const nlohmann::json& row) { return row.at("id") == "post-qwen3.8-microbench"; });
    EXPECT_FALSE(other->contains("predicted_seconds"));
    EXPECT_FALSE(other->at("not_modelled").get<std::string>().empty());
    EXPECT_EQ(json.at("summary").at("decisions").size(), shipped_validation().decisions.size());
    EXPECT_EQ(json.at("summary").at("factor_changes").size(), shipped_validation().changes.size());
}

}  // namespace
}  // namespace refit
