// SPDX-License-Identifier: Apache-2.0
#include "refit/program.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "program_run.hpp"
#include "random_refit.hpp"
#include "refit/methods.hpp"
#include "refit/program_schedule.hpp"

namespace refit {
namespace {

using testing_support::Dice;
using testing_support::random_refit;

std::vector<program::RankProgram> programs_of(const program::Schedule& schedule) {
    std::vector<program::RankProgram> programs;
    for (std::uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
        programs.push_back(schedule.program_of(rank));
    }
    return programs;
}

/// Small enough that waves, packs and chunks are many.
program::Settings small_settings(Dice& dice) {
    program::Settings settings;
    settings.most_operations = static_cast<std::uint32_t>(dice.between(2, 6));
    settings.wave_bytes = Bytes{dice.between(64, 2000)};
    settings.pack_bytes = Bytes{dice.between(64, 2000)};
    settings.least_chunk = Bytes{dice.between(16, 200)};
    return settings;
}

TEST(Program, DeliversEveryElementOnceByEveryMethodWhateverTheSettings) {
    const auto system = shipped_library().system("h100-nvl8", "system").value();
    int relayed = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        Dice dice{seed};
        const auto refit = random_refit(dice, system, 300);
        const auto settings = seed % 3 == 0 ? program::Settings{} : small_settings(dice);
        for (const auto method :
             {Method::kGatherBroadcast, Method::kDirect, Method::kStriped, Method::kOptimal}) {
            const auto plan = make_plan(method, refit.cluster, refit.rates, refit.workload).value();
            const program::Schedule schedule{plan, refit.workload, refit.cluster.train_gpus(), settings};
            const auto programs = programs_of(schedule);
            ASSERT_EQ(testing_support::run_programs(
                          programs, refit.workload, refit.cluster.train_gpus(), settings.most_operations),
                      "")
                << name_of(method) << ", seed " << seed;
            relayed += std::ranges::any_of(programs, [](const auto& program) {
                return program.rank > 0 && program.bytes_in(program::Arena::kScratch) > 0;
            });
        }
    }
    EXPECT_GT(relayed, 20);
}

}  // namespace
}  // namespace refit
