// SPDX-License-Identifier: Apache-2.0
#include "refit/plan_summary.hpp"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/methods.hpp"

namespace refit {
namespace {

constexpr std::array kAll{Method::kGatherBroadcast, Method::kHybrid, Method::kDirect, Method::kStriped, Method::kOptimal};

TEST(PlanSummary, AgreesWithTheTraffic) {
    const auto scenario = shipped_scenario("qwen3-235b-h100");
    const auto workload = Workload::make(scenario);
    for (const auto method : kAll) {
        const auto plan = make_plan(method, scenario, workload).value();
        const auto summary = summarise(plan, workload, scenario.cluster);
        const auto sums = traffic(plan, scenario.cluster);
        EXPECT_EQ(summary.ranks, sums.ports()) << name_of(method);
        std::uint64_t network = 0;
        std::uint64_t nvlink = 0;
        std::uint64_t hops = 0;
        for (const auto& pair : summary.pairs) {
            (pair.is_network ? network : nvlink) += pair.bytes;
            hops += pair.hops;
        }
        EXPECT_EQ(network, sums.network_bytes());
        EXPECT_EQ(nvlink, sums.nvlink_bytes());
        EXPECT_EQ(hops, summary.hops);
        EXPECT_TRUE(std::ranges::is_sorted(summary.pairs, std::greater{}, &PairBytes::bytes));
        std::uint64_t domains = 0;
        for (const auto& domain : summary.domains) {
            domains += domain.nic_in;
        }
        EXPECT_EQ(domains, network);
    }
}

TEST(PlanSummary, TellsHowEachClassTravels) {
    const auto scenario = shipped_scenario("qwen3-235b-h100");
    const auto workload = Workload::make(scenario);
    const auto hybrid = summarise(make_plan(Method::kHybrid, scenario, workload).value(), workload, scenario.cluster);
    const auto direct = summarise(make_plan(Method::kDirect, scenario, workload).value(), workload, scenario.cluster);
    Bytes delivered;
    for (std::size_t i = 0; i < hybrid.classes.size(); ++i) {
        const bool is_expert = hybrid.classes[i].name.find("experts") != std::string::npos;
        EXPECT_EQ(hybrid.classes[i].is_gathered, !is_expert) << hybrid.classes[i].name;
        EXPECT_EQ(hybrid.classes[i].point_to_point.count() > 0, is_expert);
        // Direct moves every wanted byte once.
        EXPECT_EQ(direct.classes[i].point_to_point, direct.classes[i].delivered);
        delivered += direct.classes[i].delivered;
    }
    EXPECT_EQ(delivered, workload.delivered_bytes());
}

TEST(PlanSummary, CountsHopsOfAllEngines) {
    // 8 GiB on four trainers of one node, four generators beside them want all: direct sends four quarters to each.
    const auto scenario = shipped_scenario("reshard-one-domain");
    const auto workload = Workload::make(scenario);
    const auto summary = summarise(make_plan(Method::kDirect, scenario, workload).value(), workload, scenario.cluster);
    EXPECT_EQ(summary.pairs.size(), summary.hops);
}

}  // namespace
}  // namespace refit
