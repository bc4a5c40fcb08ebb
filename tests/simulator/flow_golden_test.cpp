// SPDX-License-Identifier: Apache-2.0
// Lists of flows whose times SimGrid 3.32 computed (model CM02, no latency, precision 1e-12);
// tests/golden/flows.
#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "golden_flows.hpp"
#include "refit/flow_run.hpp"

namespace refit {
namespace {

struct Golden {
    const char* name;
    double makespan;
};
std::ostream& operator<<(std::ostream& out, const Golden& golden) {
    return out << golden.name;
}

class FlowGolden : public testing::TestWithParam<std::tuple<Golden, bool>> {};

TEST_P(FlowGolden, HasEveryTimeOfSimGrid) {
    const auto& [golden, has_quotient] = GetParam();
#ifndef __OPTIMIZE__
    if (std::string{golden.name} == "W3s") {
        GTEST_SKIP() << "takes a minute without optimisation";
    }
#endif
    const auto network = testing_support::golden_network(golden.name);
    const auto times = testing_support::golden_times(golden.name);
    const auto run = run_flows(network, {.has_quotient = has_quotient});
    ASSERT_TRUE(run.has_value());
    ASSERT_EQ(run->end.size(), times.size());
    double worst = 0.0;
    for (std::size_t flow = 0; flow < times.size(); ++flow) {
        worst = std::max(worst, std::abs(run->end[flow] - times[flow]) / times[flow]);
    }
    EXPECT_LT(worst, 1e-9);
    EXPECT_NEAR(run->makespan, golden.makespan, 1e-10 * golden.makespan);
}

// The makespans stand in the notes of the SimGrid runs, to eleven digits.
INSTANTIATE_TEST_SUITE_P(Workloads,
                         FlowGolden,
                         testing::Combine(testing::Values(Golden{"W0", 0.01684991328},
                                                          Golden{"W1", 0.10602419618},
                                                          Golden{"W2", 0.04284996096},
                                                          Golden{"W2c", 0.02989250066},
                                                          Golden{"W2e", 0.02147483648},
                                                          Golden{"W3s", 0.13009974826},
                                                          Golden{"W3m", 0.12871564992},
                                                          Golden{"W3c", 0.08582681424}),
                                          testing::Bool()),
                         [](const auto& tested) {
                             return std::string{std::get<0>(tested.param).name} +
                                    (std::get<1>(tested.param) ? "ByClasses" : "");
                         });

TEST(FlowTolerance, HasFewerEventsAndTimesWithinIt) {
    // No bound is proven for the times of others, so this only says what happens on this list.
    const auto network = testing_support::golden_network("W1");
    const auto times = testing_support::golden_times("W1");
    for (const double tolerance : {0.001, 0.01}) {
        const auto run = run_flows(network, {.tolerance = tolerance});
        ASSERT_TRUE(run.has_value());
        for (std::size_t flow = 0; flow < times.size(); ++flow) {
            ASSERT_NEAR(run->end[flow], times[flow], tolerance * times[flow]);
        }
        EXPECT_LT(run->events, tolerance == 0.001 ? 4000 : 1000);
        EXPECT_GT(run->events, 100);
    }
}

}  // namespace
}  // namespace refit
