// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "element_run.hpp"
#include "random_refit.hpp"
#include "refit/check.hpp"
#include "refit/methods.hpp"

namespace refit {
namespace {

using testing_support::Dice;
using testing_support::random_refit;

constexpr Method kMethods[] = {Method::kGatherBroadcast, Method::kDirect, Method::kStriped, Method::kOptimal};

std::string text_of(const Faults& faults) {
    std::string text;
    for (const auto& fault : faults) {
        text += fault.rule + ": " + fault.message + "\n";
    }
    return text;
}

constexpr int kBatches = 8;
constexpr std::size_t kPairs = 20'000;

class RandomPairs : public testing::TestWithParam<int> {};

/// Every twentieth refit is also run on arrays of elements, which neither planner nor checker know of. Every fourth has
/// tensors of megabytes, which optimal cuts into messages.
TEST_P(RandomPairs, PassTheCheckerForEveryMethod) {
    const auto system = shipped_library().system("h100-nvl8", "system").value();
    std::size_t pairs = 0;
    for (std::uint64_t seed = 0; pairs < kPairs / kBatches; ++seed) {
        Dice dice{seed * kBatches + static_cast<std::uint64_t>(GetParam())};
        const bool runs_elements = seed % 20 == 1;
        const auto refit = random_refit(dice, system, runs_elements ? 300 : 2000, seed % 4 == 0 ? 20'000 : 1);
        pairs += refit.pairs();
        for (const auto method : kMethods) {
            const auto plan = make_plan(method, refit.cluster, refit.rates, refit.workload).value();
            ASSERT_EQ(text_of(check_plan(plan, refit.workload, refit.cluster)), "") << "seed " << seed;
            if (runs_elements) {
                ASSERT_EQ(testing_support::run_elements(plan, refit.workload, refit.cluster), "")
                    << name_of(method) << ", seed " << seed;
            }
        }
    }
    EXPECT_GE(pairs, kPairs / kBatches);
}

INSTANTIATE_TEST_SUITE_P(Batch, RandomPairs, testing::Range(0, kBatches));

}  // namespace
}  // namespace refit
