// SPDX-License-Identifier: Apache-2.0
#include "refit/sensitivity.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/methods.hpp"

namespace refit {
namespace {

struct Case {
    Setting setting;
    PlanLoads loads;
    std::vector<Sensitivity> found;

    [[nodiscard]] const Sensitivity& of(const std::string& name) const {
        return *std::ranges::find(found, name, &Sensitivity::constant);
    }
    [[nodiscard]] bool has(const std::string& name) const {
        return std::ranges::find(found, name, &Sensitivity::constant) != found.end();
    }
};

Case case_of(Method method, const std::string& name) {
    const auto scenario = shipped_scenario(name);
    const auto workload = Workload::make(scenario);
    auto setting = make_setting(scenario, workload);
    auto loads = make_loads(make_plan(method, scenario, workload).value(), scenario.cluster);
    auto found = sensitivities(loads, setting);
    return {std::move(setting), std::move(loads), std::move(found)};
}

// Direct: each of four trainers sends 16 x 2,147,483,648 B by its NIC, once 50 GB/s times the efficiency;
// beside it fixed_cost + 20 GPUs x fixed_cost_per_gpu. Nothing else takes time: 1 / efficiency is all that
// the NIC does.
TEST(Sensitivity, IsTheTimeAtBothEndsOfAnInterval) {
    const auto direct = case_of(Method::kDirect, "reshard-two-domains");
    const auto& constants = direct.setting.constants;
    const auto wire = 16.0 * 2'147'483'648.0 / 50e9;
    const auto& nic = constants.nic_efficiency;
    const auto total = estimate(direct.loads, direct.setting).total.value();
    const auto rest = total - wire / nic.value;
    const auto& found = direct.of("nic_efficiency");
    EXPECT_NEAR(found.at_low.value(), rest + wire / nic.low, 1e-9);
    EXPECT_NEAR(found.at_high.value(), rest + wire / nic.high, 1e-9);
    EXPECT_NEAR(found.span(), wire / nic.low - wire / nic.high, 1e-9);
    EXPECT_NEAR(found.elasticity, -wire / nic.value / total, 1e-6);
    EXPECT_NEAR(
        direct.of("fixed_cost_per_gpu").elasticity, 20 * constants.fixed_cost_per_gpu.value / total, 1e-6);
}

TEST(Sensitivity, NamesOnlyWhatMovesTheTimeAndTheMostFirst) {
    const auto direct = case_of(Method::kDirect, "reshard-two-domains");
    EXPECT_FALSE(direct.has("nvlink_efficiency"));
    EXPECT_FALSE(direct.has("tensor_cost"));
    EXPECT_FALSE(direct.has("model_error"));
    EXPECT_TRUE(std::ranges::is_sorted(direct.found, std::greater{}, &Sensitivity::span));
    // What loading hides behind moves nothing on H100, and everything for Ultra.
    EXPECT_FALSE(case_of(Method::kGatherBroadcast, "deepseek-v3-h100").has("tensor_cost"));
    EXPECT_TRUE(case_of(Method::kGatherBroadcast, "nemotron-ultra-gb200").has("tensor_cost"));
}

}  // namespace
}  // namespace refit
