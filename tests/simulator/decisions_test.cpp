// SPDX-License-Identifier: Apache-2.0
#include "refit/decisions.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/io/published_scenario.hpp"

namespace refit {
namespace {

struct Job {
    std::vector<ValidationCase> cases;
    std::vector<ValidationRow> rows;
};

/// Shipped records with these published and predicted times in place of their own.
struct Changed {
    const char* id;
    double low;
    double high;
    double predicted;
};
Job job_of(std::initializer_list<Changed> records) {
    const auto all = shipped_library().published().value();
    Job job;
    for (const auto& changed : records) {
        const auto& record = *std::ranges::find(all, std::string{changed.id}, &PublishedRecord::id);
        auto made = io::scenario_of(record, all, shipped_library()).value();
        ValidationRow row;
        row.record = record;
        row.low = Seconds{changed.low};
        row.high = Seconds{changed.high};
        const Seconds predicted{changed.predicted};
        row.prediction = Prediction{predicted, predicted, predicted, "nic-in"};
        row.error = error_beside(predicted, *row.low, *row.high);
        row.configuration = job.rows.size();
        job.cases.push_back({record, std::move(made.scenario), "", {}});
        job.rows.push_back(std::move(row));
    }
    return job;
}

TEST(Decisions, CostWhatTheChosenWayIsSlowerThanTheBest) {
    // The prediction prefers the broadcast, which takes 6 s; the best takes (1.8 + 2.2) / 2 = 2 s.
    const auto job =
        job_of({{"post-dsv3-h100-broadcast", 6.0, 6.0, 3.0}, {"post-dsv3-h100-reshard", 1.8, 2.2, 3.5}});
    const auto made = decisions(job.cases, job.rows);
    ASSERT_EQ(made.size(), 1U);
    EXPECT_EQ(made[0].model, "DeepSeek-V3");
    EXPECT_EQ(made[0].options[made[0].chosen].id, "post-dsv3-h100-broadcast");
    EXPECT_EQ(made[0].options[made[0].best].id, "post-dsv3-h100-reshard");
    EXPECT_DOUBLE_EQ(made[0].regret, 2.0);
}

TEST(Decisions, AreAmongWaysOfOneRefitOnly) {
    // Another system, and another model.
    const auto job = job_of({{"post-dsv3-h100-broadcast", 6.0, 6.0, 3.0},
                             {"post-dsv3-gb200-reshard", 2.0, 2.0, 2.0},
                             {"post-235b-h100-reshard", 2.0, 2.0, 2.0}});
    EXPECT_TRUE(decisions(job.cases, job.rows).empty());
}

TEST(FactorChanges, AreSignsOfRefitsThatDifferInOneThing) {
    const auto job = job_of({{"post-dsv3-h100-broadcast", 14.0, 15.0, 14.0},
                             {"post-dsv3-h100-reshard", 2.0, 3.0, 2.5},
                             {"post-dsv3-gb200-broadcast", 6.0, 7.0, 16.0},
                             {"nemo-shrink-32", 2.0, 2.1, 2.0},
                             {"nemo-shrink-64", 2.05, 2.2, 2.2},
                             {"nemo-shrink-1024", 2.6, 2.6, 2.5}});
    const auto changes = factor_changes(job.cases, job.rows);
    // Not: reshard on H100 beside broadcast on GB200, which differ twice; 32 beside 64 GPUs, whose ranges
    // meet.
    ASSERT_EQ(changes.size(), 4U);
    EXPECT_EQ(changes[0].factor, "engine");
    EXPECT_DOUBLE_EQ(changes[0].published, 2.5 / 14.5);
    EXPECT_DOUBLE_EQ(changes[0].predicted, 2.5 / 14.0);
    EXPECT_TRUE(changes[0].has_right_sign());
    EXPECT_EQ(changes[1].factor, "system");
    EXPECT_EQ(changes[1].to, "post-dsv3-gb200-broadcast");
    EXPECT_FALSE(changes[1].has_right_sign());
    EXPECT_EQ(changes[2].factor, "GPUs");
    EXPECT_EQ(changes[3].from, "nemo-shrink-64");
    EXPECT_TRUE(changes[3].has_right_sign());
}

/// Every shipped record, predicted.
const Job& shipped() {
    static const auto job = [] {
        const auto all = shipped_library().published().value();
        Job made;
        for (const auto& record : all) {
            auto scenario = io::scenario_of(record, all, shipped_library());
            made.cases.push_back(scenario ? ValidationCase{record, scenario->scenario, "", {}}
                                          : ValidationCase{record, std::nullopt, "", {}});
        }
        made.rows = validate(made.cases, all).rows;
        return made;
    }();
    return job;
}

TEST(Decisions, OnEveryPublishedSetCostAtMostATwentieth) {
    const auto made = decisions(shipped().cases, shipped().rows);
    EXPECT_GE(made.size(), 11U);
    for (const auto& decision : made) {
        EXPECT_LE(decision.regret, 0.05) << decision.model << ": " << decision.options[decision.chosen].id
                                         << " for " << decision.options[decision.best].id;
    }
}

TEST(FactorChanges, OfEveryPublishedPairHaveTheRightSign) {
    const auto made = factor_changes(shipped().cases, shipped().rows);
    EXPECT_GE(made.size(), 20U);
    for (const auto& change : made) {
        EXPECT_TRUE(change.has_right_sign())
            << change.factor << ", " << change.from << " to " << change.to << ": published x"
            << change.published << ", predicted x" << change.predicted;
    }
}

}  // namespace
}  // namespace refit
