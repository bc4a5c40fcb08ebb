// SPDX-License-Identifier: Apache-2.0
#include "refit/certificate.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/methods.hpp"

namespace refit {
namespace {

Certificate certificate_of(const Scenario& scenario, Method method) {
    const auto workload = Workload::make(scenario);
    return certify(make_plan(method, scenario, workload).value(), scenario, workload);
}

Seconds relaxed(const Certificate& certificate, const std::string& condition) {
    const auto found = std::ranges::find(certificate.relaxations, condition, &Relaxation::condition);
    return found == certificate.relaxations.end() ? Seconds{-1.0} : found->bound;
}

TEST(Certificate, OfEveryMethodIsAtLeastOneAndOfOptimalNearIt) {
    const auto scenario = shipped_scenario("deepseek-v3-h100");
    for (const auto method : {Method::kGatherBroadcast, Method::kHybrid, Method::kDirect, Method::kStriped}) {
        EXPECT_GE(certificate_of(scenario, method).ratio(), 1.0 - 1e-9) << name_of(method);
    }
    const auto optimal = certificate_of(scenario, Method::kOptimal);
    EXPECT_LE(optimal.ratio(), 1.002);
    EXPECT_EQ(optimal.resource, "nic-in");
    EXPECT_FALSE(scenario.cluster.is_trainer(optimal.rank));
}

TEST(Certificate, SaysWhatLentNicsBuy) {
    // One trainer holds 8 GiB and sends it out of a node of 8 by its own NIC, or by its seven neighbours' too. Alone in
    // its node there is nobody to lend: both bounds are 8 GiB over one NIC at the rate that software reaches.
    const auto scenario = shipped_scenario("reshard-two-domains", {{"train.layout", "tp1@1"}, {"train.gpus", "1"}});
    const auto certificate = certificate_of(scenario, Method::kOptimal);
    const auto seconds = 8589934592.0 / (50e9 * scenario.engine.constants.nic_efficiency.value);
    EXPECT_NEAR(relaxed(certificate, "if only the holders' own NICs send").value(), seconds, 1e-9);
    EXPECT_NEAR(certificate.bounds.own_nic_egress.time.value(), seconds, 1e-9);
}

TEST(Certificate, SaysWhatOneStageAtATimeCosts) {
    // 16 stages of 16 trainers: each stage's experts leave its two nodes over 16 NICs, longer than they take to enter.
    const auto certificate = certificate_of(shipped_scenario("deepseek-v3-h100"), Method::kOptimal);
    EXPECT_GT(relaxed(certificate, "one training stage at a time") / certificate.bounds.largest().time, 1.9);
}

TEST(Certificate, SaysWhatWholeRacksCost) {
    const auto scenario = shipped_scenario("deepseek-v3-gb200");
    const auto certificate = certificate_of(scenario, Method::kOptimal);
    // 256 generators in racks of 72 leave 40 in the fourth: it takes longer than racks of 64.
    EXPECT_GT(relaxed(certificate, "with all 72 GPUs of each domain used, sides apart") / certificate.bounds.largest().time, 1.5);
}

}  // namespace
}  // namespace refit
