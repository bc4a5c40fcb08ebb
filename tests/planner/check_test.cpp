// SPDX-License-Identifier: Apache-2.0
#include "refit/check.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/methods.hpp"

namespace refit {
namespace {

std::string text_of(const Faults& faults) {
    std::string text;
    for (const auto& fault : faults) {
        text += fault.rule + ": " + fault.message + "\n";
    }
    return text;
}

class ShippedPlan : public testing::TestWithParam<std::tuple<std::string, Method>> {};

TEST_P(ShippedPlan, DeliversEveryElementExactlyOnce) {
    const auto& [name, method] = GetParam();
    const auto scenario = shipped_scenario(name);
    const auto workload = Workload::make(scenario);
    const auto plan = make_plan(method, scenario, workload);
    if (!plan) {
        GTEST_SKIP() << "refused: " << plan.error().front().message;
    }
    EXPECT_EQ(text_of(check_plan(*plan, workload, scenario.cluster)), "");
}

std::vector<std::string> scenario_names() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{std::filesystem::path{REFIT_DATA_DIR} / "scenarios"}) {
        names.push_back(entry.path().stem().string());
    }
    std::ranges::sort(names);
    return names;
}

std::string test_name(const testing::TestParamInfo<std::tuple<std::string, Method>>& info) {
    auto name = std::get<0>(info.param) + "_" + std::string{name_of(std::get<1>(info.param))};
    std::ranges::replace_if(name, [](char c) { return c == '-' || c == '.'; }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Shipped, ShippedPlan,
                         testing::Combine(testing::ValuesIn(scenario_names()),
                                          testing::Values(Method::kGatherBroadcast, Method::kHybrid, Method::kDirect,
                                                          Method::kStriped, Method::kOptimal)),
                         test_name);

}  // namespace
}  // namespace refit
