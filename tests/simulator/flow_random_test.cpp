// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "fluid_oracle.hpp"
#include "random_network.hpp"
#include "refit/flow_run.hpp"

namespace refit {
namespace {

using testing_support::random_network;
using testing_support::run_slowly;
using testing_support::Variety;

/// A link may be down for good where two changes of it overlap.
void expect_agreement(std::uint64_t seed, const Variety& variety, bool has_quotient) {
    const auto network = random_network(seed, variety);
    ASSERT_TRUE(network.faults().empty());
    const auto slow = run_slowly(network);
    const auto fast = run_flows(network, {.has_quotient = has_quotient});
    ASSERT_EQ(fast.has_value(), slow.has_value());
    if (!slow) {
        EXPECT_EQ(fast.error().front().rule, "link-down");
        return;
    }
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        ASSERT_NEAR(fast->end[flow], slow->end[flow], 1e-9 * slow->end[flow]) << "flow " << flow;
        ASSERT_NEAR(fast->start[flow], slow->start[flow], 1e-9 * slow->start[flow]) << "flow " << flow;
    }
}

void expect_agreement(std::uint64_t first_seed, std::uint64_t count, const Variety& variety) {
    for (auto seed = first_seed; seed < first_seed + count; ++seed) {
        for (const bool has_quotient : {false, true}) {
            SCOPED_TRACE("seed " + std::to_string(seed) + (has_quotient ? " by classes" : ""));
            expect_agreement(seed, variety, has_quotient);
            if (testing::Test::HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST(FlowRandom, AgreesWithTheSlowSolverOnAllKindsOfNetworks) {
    expect_agreement(1, 3000, {});
}

TEST(FlowRandom, AgreesWithTheSlowSolverOnPlainPairsOfLinks) {
    expect_agreement(10'001,
                     1000,
                     {.max_links = 8,
                      .max_flows = 24,
                      .max_uses = 2,
                      .has_coefficients = false,
                      .has_caps = false,
                      .has_order = false,
                      .has_changes = false});
}

TEST(FlowRandom, AgreesWithTheSlowSolverOnWeightedPairs) {
    expect_agreement(20'001, 500, {.max_links = 10, .max_flows = 24, .max_uses = 2});
}

TEST(FlowRandom, AgreesWithTheSlowSolverOnLongPaths) {
    expect_agreement(30'001, 500, {.max_links = 12, .max_flows = 24, .max_uses = 8});
}

}  // namespace
}  // namespace refit
