// SPDX-License-Identifier: Apache-2.0
#include "refit/loads.hpp"

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/methods.hpp"

namespace refit {
namespace {

TEST(Loads, ReduceEachCollectiveToItsSlowestGroup) {
    const auto scenario = shipped_scenario("deepseek-v3-gb200");
    const auto workload = Workload::make(scenario);
    const auto loads = make_loads(make_plan(Method::kGatherBroadcast, scenario, workload).value(), scenario.cluster);
    ASSERT_EQ(loads.stages.size(), 2U);
    const auto& pipeline = loads.stages[0].rings.front();
    EXPECT_EQ(pipeline.role, CollectiveRole::kPipelineBroadcast);
    EXPECT_TRUE(pipeline.crosses_domains);
    EXPECT_EQ(pipeline.channels, 4.0);  // four stages of 16 ranks in a rack of 64
    const auto& expert = loads.stages[0].rings.back();
    EXPECT_EQ(expert.role, CollectiveRole::kExpertAllGather);
    EXPECT_FALSE(expert.crosses_domains);
    EXPECT_EQ(expert.wire_bytes, 1'307'817'541'632.0 / 16 * 15);
}

TEST(Loads, BusiestPortsOfAReshardStage) {
    // Stage 1 of DeepSeek-V3 (4 MoE layers): 4 x 3 x 7.516 GB / 16 trainers out, / 256 receivers in.
    const auto scenario = shipped_scenario("deepseek-v3-h100");
    const auto workload = Workload::make(scenario);
    const auto loads = make_loads(make_plan(Method::kHybrid, scenario, workload).value(), scenario.cluster);
    constexpr double kProjection = 256.0 * 2048 * 7168 * 2;
    EXPECT_EQ(loads.stages[1].train.nic_out, 12 * kProjection / 16);
    EXPECT_EQ(loads.stages[1].generate.nic_in, 12 * kProjection / 256);
    EXPECT_EQ(loads.stages[1].expert_parameters, 12U);
}

}  // namespace
}  // namespace refit
