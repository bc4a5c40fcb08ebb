// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/host.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "../planner/random_refit.hpp"
#include "../shipped.hpp"
#include "refit/exec/measure.hpp"
#include "refit/exec/rank_storage.hpp"
#include "refit/exec/values.hpp"
#include "refit/methods.hpp"

namespace refit::exec {
namespace {

using testing_support::Dice;

/// A refit with relays: 16 columns go from each of 4 trainers to 6 generators in two domains.
struct Small {
    testing_support::RandomRefit refit;
    Plan plan;
    program::Schedule schedule;

    explicit Small(Method method = Method::kOptimal, std::uint64_t seed = 5, program::Settings settings = {})
        : refit{make(seed)},
          plan{make_plan(method, refit.cluster, refit.rates, refit.workload).value()},
          schedule{plan, refit.workload, refit.cluster.train_gpus(), settings} {}

    static testing_support::RandomRefit make(std::uint64_t seed) {
        Dice dice{seed};
        return testing_support::random_refit(
            dice, shipped_library().system("h100-nvl8", "system").value(), 2000);
    }
    [[nodiscard]] Job job(std::vector<Injection> injections = {}, int deadline = 20'000) const {
        Job job;
        job.schedule = &schedule;
        job.deadline = std::chrono::milliseconds{deadline};
        job.threads = 2;
        job.injections = std::move(injections);
        return job;
    }
};

program::Settings many_waves() {
    program::Settings settings;
    settings.most_operations = 2;
    settings.wave_bytes = Bytes{200U};
    settings.pack_bytes = Bytes{200U};
    settings.least_chunk = Bytes{32U};
    return settings;
}

/// What a failed run says, and that it left the old weights.
std::string failure(const Small& small, const Job& job) {
    const auto transport = make_host_transport();
    const auto measured = measure(*transport, job, {0, 1});
    if (measured) {
        return {};
    }
    std::string text;
    for (const auto& fault : measured.error()) {
        text += fault.rule + ": " + fault.message + "\n";
    }
    static_cast<void>(small);
    return text;
}

TEST(Values, DifferBetweenVersionsTensorsAndElements) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t version = 0; version < 4; ++version) {
        for (std::uint64_t parameter = 0; parameter < 4; ++parameter) {
            for (std::uint64_t number = 0; number < 4; ++number) {
                for (std::uint64_t index = 0; index < 4; ++index) {
                    seen.insert(value_of(seed_of(version, parameter, number), index));
                }
            }
        }
    }
    EXPECT_EQ(seen.size(), 256U);
    EXPECT_EQ(narrowed(0x123456789a, 1), 0x9aU);
    EXPECT_EQ(narrowed(0x123456789a, 4), 0x3456789aU);
}

TEST(RankStorage, HoldsNothingRightBeforeItIsWritten) {
    const Small small;
    const auto program = small.schedule.program_of(small.schedule.ranks() - 1);
    const auto storage = RankStorage::allocate(program).value();
    fill(program, small.refit.workload, 1, storage);
    EXPECT_TRUE(compare(program, small.refit.workload, 1, storage).mismatch.has_value());
    fill_served(program, small.refit.workload, 7, storage);
    EXPECT_TRUE(serves(program, small.refit.workload, 7, storage));
    EXPECT_FALSE(serves(program, small.refit.workload, 8, storage));
}

TEST(Host, DeliversRandomRefitsByEveryMethod) {
    for (std::uint64_t seed = 0; seed < 25; ++seed) {
        for (const auto method :
             {Method::kGatherBroadcast, Method::kDirect, Method::kStriped, Method::kOptimal}) {
            const Small small{method, seed, seed % 2 == 0 ? many_waves() : program::Settings{}};
            const auto transport = make_host_transport();
            auto job = small.job();
            job.streams = seed % 3 == 0;
            const auto measured = measure(*transport, job, {0, 1});
            ASSERT_TRUE(measured.has_value()) << measured.error().front().message << ", seed " << seed;
            ASSERT_EQ(measured->records.size(), small.schedule.ranks());
            std::uint64_t bytes = 0;
            for (const auto held : small.refit.workload.generator_bytes()) {
                bytes += held;
            }
            ASSERT_EQ(measured->elements == 0, bytes == 0);
            ASSERT_FALSE(transport->old_weights_stand());
        }
    }
}

TEST(Host, LeavesTheSameChecksumsWhateverTheThreads) {
    const Small small{Method::kOptimal, 5, many_waves()};
    std::map<std::uint32_t, std::vector<std::uint64_t>> sums;
    for (const std::uint32_t threads : {1U, 2U, 5U}) {
        auto job = small.job();
        job.threads = threads;
        const auto transport = make_host_transport();
        const auto measured = measure(*transport, job, {0, 1}).value();
        for (const auto& record : measured.records) {
            sums[threads].push_back(record.checksum);
        }
    }
    EXPECT_EQ(sums[1], sums[2]);
    EXPECT_EQ(sums[1], sums[5]);
}

TEST(Host, NamesARankThatDiesAtAnyWaveAndKeepsTheOldWeights) {
    const Small small{Method::kOptimal, 5, many_waves()};
    ASSERT_GE(small.schedule.waves(), 4U);
    for (std::uint32_t wave = 0; wave < small.schedule.waves(); ++wave) {
        for (const std::uint32_t rank : {0U, small.schedule.ranks() - 1}) {
            const auto text = failure(small, small.job({{InjectionKind::kDies, rank, wave}}));
            EXPECT_NE(text.find("rank-died: rank " + std::to_string(rank) + " died"), std::string::npos)
                << text;
            EXPECT_EQ(text.find("old-weights-lost"), std::string::npos) << text;
        }
    }
}

TEST(Host, NamesARankThatStallsAtTheDeadline) {
    const Small small{Method::kOptimal, 5, many_waves()};
    const auto last = small.schedule.ranks() - 1;
    for (const std::uint32_t wave : {0U, 1U, 2U}) {
        const auto before = std::chrono::steady_clock::now();
        const auto text = failure(small, small.job({{InjectionKind::kStalls, last, wave}}, 100));
        EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds{5});
        EXPECT_NE(text.find("rank-stalled: rank " + std::to_string(last) + " is still"), std::string::npos)
            << text;
        EXPECT_EQ(text.find("old-weights-lost"), std::string::npos) << text;
    }
}

TEST(Host, FinishesAndVerifiesWithASlowRank) {
    const Small small;
    EXPECT_EQ(failure(small, small.job({{InjectionKind::kSlows, 0, 0}})), "");
}

TEST(Host, NamesTheRankThatCannotAllocateOrDiffers) {
    const Small small;
    const auto with = [&](InjectionKind kind) { return failure(small, small.job({{kind, 2, 0}})); };
    EXPECT_NE(with(InjectionKind::kOutOfMemory).find("out-of-memory: rank 2"), std::string::npos);
    EXPECT_NE(with(InjectionKind::kOtherPlan).find("other-plan: rank 2"), std::string::npos);
    EXPECT_NE(with(InjectionKind::kOtherVersion).find("other-version: rank 2"), std::string::npos);
}

/// The first byte that rank 0 gives in wave 0 is wrong on arrival.
TEST(Host, NamesTheElementThatArrivedWrongAndWhoShouldHaveSentIt) {
    const Small small{Method::kDirect};
    const auto text = failure(small, small.job({{InjectionKind::kCorrupts, 0, 0}}));
    EXPECT_NE(text.find("not-verified: rank "), std::string::npos) << text;
    EXPECT_NE(text.find("of wave 1 should have brought it from rank 0"), std::string::npos) << text;
    EXPECT_NE(text.find("layers.{layer}.weight, tensor "), std::string::npos) << text;
}

/// Boxes of a transfer exchanged with those of another: what a planted mistake in a plan looks like.
TEST(Host, FindsAMistakePlantedInAPlan) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        Small small{Method::kDirect, seed};
        auto plan = small.plan;
        const auto block = std::ranges::find_if(plan.blocks, [](const TransferBlock& b) {
            return b.boxes.size() > 1 && b.boxes[0].volume() > 0;
        });
        if (block == plan.blocks.end()) {
            continue;
        }
        // One transfer carries the box of another, so its own elements do not arrive.
        block->box[0] = block->box[0] == 0 ? 1 : 0;
        std::string text;
        try {
            const program::Schedule schedule{plan, small.refit.workload, small.refit.cluster.train_gpus()};
            auto job = small.job();
            job.schedule = &schedule;
            job.threads = 1;  // Two transfers may write the same elements now.
            text = failure(small, job);
        } catch (const std::logic_error& error) {
            text = std::string{"not-verified: "} + error.what();
        }
        EXPECT_NE(text.find("not-verified: "), std::string::npos) << "seed " << seed << text;
    }
}

/// 1, 2 … 20: the median is between 10 and 11; 19 of 20 are 95 %.
TEST(Measure, TakesMedianAndNinetyFifthPercentile) {
    std::vector<Seconds> times;
    for (int i = 20; i > 0; --i) {
        times.emplace_back(i);
    }
    const auto spread = spread_of(times);
    EXPECT_EQ(spread.min, Seconds{1.0});
    EXPECT_EQ(spread.median, Seconds{10.5});
    EXPECT_EQ(spread.p95, Seconds{19.0});
    EXPECT_EQ(spread.max, Seconds{20.0});
    EXPECT_EQ(spread_of({Seconds{3.0}}).p95, Seconds{3.0});
}

TEST(Measure, KeepsEveryRunAndTheTimesOfRanksAndStages) {
    const Small small{Method::kGatherBroadcast};
    const auto transport = make_host_transport();
    const auto measured = measure(*transport, small.job(), {1, 3}).value();
    EXPECT_EQ(measured.runs.size(), 3U);
    EXPECT_EQ(measured.ranks.size(), small.schedule.ranks());
    EXPECT_EQ(measured.stages.size(), small.plan.stages.size());
    EXPECT_GT(measured.seconds.min, Seconds{});
}

TEST(Measure, CallsBetweenBeforeEachRunThatCountsAndFailsWithIt) {
    const Small small{Method::kDirect};
    const auto transport = make_host_transport();
    int calls = 0;
    Repeats repeats{2, 3};
    repeats.between = [&]() -> Result<void> {
        ++calls;
        return {};
    };
    ASSERT_TRUE(measure(*transport, small.job(), repeats));
    EXPECT_EQ(calls, 3);
    repeats.between = []() -> Result<void> { return fail(ErrorCode::kInfeasible, "late", "too late"); };
    const auto failed = measure(*make_host_transport(), small.job(), repeats);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().front().message, "too late");
}

}  // namespace
}  // namespace refit::exec
