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
#include "study.hpp"

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

TEST(Program, CutsChunksThatDifferByAByteAtTheSameElements) {
    // Chunks of 511 and of 512 bytes follow each other here. One that would cut rows of 8 bytes and a neighbour that would
    // leave them whole lose elements between them, or have them twice.
    const auto system = shipped_library().system("h100-nvl8", "system").value();
    const Cluster cluster{system, system, 2, 8, {2, 2, true}};
    int tried = 0;
    for (std::uint64_t rows = 1000; rows < 1100; rows += 2) {
        const auto workload = study::workload_of({{10, rows, 4}, 2, 1, 1, 1, 2, 4});
        const auto plan = make_plan(Method::kOptimal, cluster, port_rates(cluster, 1.0, 1.0), workload).value();
        const auto bytes = plan.stages.front().relays.messages.front().bytes;
        const auto chunks = bytes / 511;
        if (bytes % 511 < chunks / 4 || bytes % 511 > chunks * 3 / 4) {
            continue;  // All of one length.
        }
        program::Settings settings;
        settings.least_chunk = Bytes{511U};
        settings.wave_bytes = Bytes{511U};
        const program::Schedule schedule{plan, workload, 2, settings};
        ASSERT_EQ(testing_support::run_programs(programs_of(schedule), workload, 2, settings.most_operations), "")
            << rows << " rows, " << bytes << " bytes in " << chunks << " chunks";
        ++tried;
    }
    EXPECT_GT(tried, 0);
}

}  // namespace
}  // namespace refit
