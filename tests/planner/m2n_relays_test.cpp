// SPDX-License-Identifier: Apache-2.0
#include "refit/m2n_relays.hpp"

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/check.hpp"
#include "refit/m2n.hpp"
#include "refit/m2n_calls.hpp"
#include "refit/methods.hpp"
#include "refit/traffic.hpp"

namespace refit {
namespace {

TEST(M2nRelays, CarryWhatEachCallsOwnPlanCounts) {
    // On nodes of 8 every injection and ring hop crosses NICs, and every store to a follower stays on NVLink.
    const auto scenario = shipped_scenario("deepseek-v3-h100");
    const auto workload = Workload::make(scenario);
    const auto plan = make_plan(Method::kM2n, scenario, workload).value();
    std::uint64_t network = 0;
    std::uint64_t nvlink = 0;
    for (const auto& calls : m2n_calls(scenario, workload)) {
        const auto totals = m2n_plan(*calls.call, calls.settings).value().totals;
        network += (totals.inject_bytes + totals.ring_bytes) * calls.calls;
        nvlink += totals.fanout_bytes * calls.calls;
    }
    const auto sums = traffic(plan, scenario.cluster);
    EXPECT_EQ(sums.network_bytes(), network);
    EXPECT_EQ(sums.nvlink_bytes(), nvlink);
}

TEST(M2nRelays, DeliverEveryElementOnce) {
    for (const char* name : {"deepseek-v3-h100", "deepseek-v3-gb200"}) {
        const auto scenario = shipped_scenario(name);
        const auto workload = Workload::make(scenario);
        const auto plan = make_plan(Method::kM2n, scenario, workload).value();
        const auto faults = check_plan(plan, workload, scenario.cluster);
        EXPECT_TRUE(faults.empty()) << name << ": " << faults.front().message;
        EXPECT_EQ(plan.stages.front().relays.chunks, 8U);
    }
}

TEST(M2nRelays, AreRefusedByTheLimitsOfM2n) {
    const auto scenario = shipped_scenario("kimi-k3-h100");
    const auto workload = Workload::make(scenario);
    const auto relays = m2n_relays(scenario, workload);
    ASSERT_FALSE(relays.has_value());
    EXPECT_EQ(relays.error().front().rule, "TENSOR_AXES");
}

}  // namespace
}  // namespace refit
