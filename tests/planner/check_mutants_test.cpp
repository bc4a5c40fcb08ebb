// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "element_run.hpp"
#include "plan_mutants.hpp"
#include "random_refit.hpp"
#include "refit/check.hpp"
#include "refit/methods.hpp"
#include "refit/overlap.hpp"

namespace refit {
namespace {

using testing_support::Dice;
using testing_support::Mutation;
using testing_support::Proof;
using testing_support::random_refit;
using testing_support::RandomRefit;
using testing_support::run_elements;

/// Mutants made and caught, by mutation.
struct Tally {
    std::map<std::string_view, int> made;
    std::map<std::string_view, int> caught;
    int equivalent = 0;
    int equivalent_refused = 0;
};

/// Whether a mutant is wrong, as the arrays of elements or its construction say.
bool is_wrong(const Mutation& mutation, const Plan& mutant, const RandomRefit& refit) {
    return mutation.proof == Proof::kByConstruction || !run_elements(mutant, refit.workload, refit.cluster).empty();
}

void try_mutation(const Mutation& mutation, const Plan& plan, Dice& dice, const RandomRefit& refit, Tally& tally) {
    auto mutant = plan;
    if (!mutation.apply(mutant, dice, refit) || mutant == plan) {
        return;
    }
    const bool is_refused = !check_plan(mutant, refit.workload, refit.cluster).empty();
    if (is_wrong(mutation, mutant, refit)) {
        ++tally.made[mutation.name];
        tally.caught[mutation.name] += is_refused ? 1 : 0;
    } else {
        ++tally.equivalent;
        tally.equivalent_refused += is_refused ? 1 : 0;
        EXPECT_FALSE(is_refused && mutation.name == "send from another trainer");
    }
}

constexpr std::uint64_t kRefits = 150;

TEST(PlanMutants, AreAllCaught) {
    const auto system = shipped_library().system("h100-nvl8", "system").value();
    Tally tally;
    for (std::uint64_t seed = 0; seed < kRefits; ++seed) {
        Dice dice{seed};
        const auto refit = random_refit(dice, system, 120);
        for (const auto method : {Method::kGatherBroadcast, Method::kDirect, Method::kStriped, Method::kOptimal}) {
            const auto plan = make_plan(method, refit.cluster, refit.rates, refit.workload).value();
            for (const auto& mutation : testing_support::mutations()) {
                try_mutation(mutation, plan, dice, refit, tally);
            }
        }
    }
    int made = 0;
    for (const auto& mutation : testing_support::mutations()) {
        made += tally.made[mutation.name];
        EXPECT_GE(tally.made[mutation.name], 10) << mutation.name;
        EXPECT_EQ(tally.caught[mutation.name], tally.made[mutation.name]) << mutation.name;
    }
    EXPECT_GE(made, 300);
    std::cout << made << " mutants, " << tally.equivalent << " equivalent, " << tally.equivalent_refused << " of those refused\n";
    for (auto& [n, c] : tally.made) std::cout << "  " << n << " " << c << "\n";
}

}  // namespace
}  // namespace refit
