// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/host_rates.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "../planner/random_refit.hpp"
#include "../shipped.hpp"
#include "refit/methods.hpp"

namespace refit::exec {
namespace {

/// One tensor of 1000 rows of 64 bytes, from one trainer to one generator, which wants all of it.
Workload one_tensor(std::uint32_t generators) {
    ParameterClass parameter;
    parameter.name = "w";
    parameter.shape = {1000, 32};
    const auto whole = Box::whole(parameter.shape);
    std::vector<std::uint32_t> members(generators);
    for (std::uint32_t i = 0; i < generators; ++i) {
        members[i] = i;
    }
    const Distribution source{{1000, 32}, {{{whole}, {0}}}};
    const Distribution destination{{1000, 32}, {{{whole}, members}}};
    return Workload::of({{parameter, source, {destination}, {{0, 0, 1}}}}, 1, 1, generators);
}

Plan direct_plan(const Workload& workload, std::uint32_t generators) {
    const auto system = shipped_library().system("h100-nvl8", "system").value();
    const Cluster cluster{system, system, 1, generators, Placement{8, 8, true}};
    return make_plan(Method::kDirect, cluster, port_rates(cluster, 1.0, 1.0), workload).value();
}

HostRates round_rates() {
    HostRates rates;
    rates.threads = 2;
    for (const std::uint32_t threads : {1U, 2U}) {
        for (const auto pattern : {CopyPattern::kGather, CopyPattern::kScatter, CopyPattern::kRepeat}) {
            rates.copies.push_back({pattern, threads, 64, 1 << 20, 1e9 * threads});
        }
    }
    rates.wave = Seconds{1e-6};
    rates.copy = Seconds{0.0};
    return rates;
}

/// 64,000 bytes are one task: one thread at 1 GB/s takes 64 us, and the wave 1 us.
TEST(HostRates, PredictsOneTaskAtTheRateOfOneThread) {
    const auto workload = one_tensor(1);
    const auto plan = direct_plan(workload, 1);
    const program::Schedule schedule{plan, workload, 1};
    EXPECT_NEAR(predict_host(schedule, round_rates()).value(), 65e-6, 1e-9);
}

/// Ten copies of it are 640,000 bytes: tasks of 256 KiB and more, 5 tiles each and then the rest, so the
/// longest has 320,000 at 1 GB/s and all together take 320 us at 2 GB/s.
TEST(HostRates, PredictsManyTasksAtTheRateOfAllThreads) {
    const auto workload = one_tensor(10);
    const auto plan = direct_plan(workload, 10);
    const program::Schedule schedule{plan, workload, 1};
    EXPECT_NEAR(predict_host(schedule, round_rates()).value(), 321e-6, 1e-9);
}

/// 15 copies are three tasks of 320,000 bytes: two threads take 320 us for the first two, and one as long for the
/// third.
TEST(HostRates, PredictsAThreadThatIdlesWhileTheLastTaskRuns) {
    const auto workload = one_tensor(15);
    const auto plan = direct_plan(workload, 15);
    const program::Schedule schedule{plan, workload, 1};
    EXPECT_NEAR(predict_host(schedule, round_rates()).value(), 641e-6, 1e-9);
}

/// Two threads that copy no more than one: 640,000 bytes at 1 GB/s.
TEST(HostRates, PredictsThreadsThatShareOneMemory) {
    auto rates = round_rates();
    for (auto& rate : rates.copies) {
        rate.bytes_per_second = 1e9;
    }
    const auto workload = one_tensor(10);
    const auto plan = direct_plan(workload, 10);
    const program::Schedule schedule{plan, workload, 1};
    EXPECT_NEAR(predict_host(schedule, rates).value(), 641e-6, 1e-9);
}

/// Between two refits 64,000 bytes are read and as many written. 128,000 is in the middle of 32,000 and 512,000 on
/// a logarithmic scale, and 2 GB/s in that of 4 and 1.
TEST(HostRates, PredictsFromTheBytesBetweenTwoUsesOfTheSameMemory) {
    auto rates = round_rates();
    for (auto& rate : rates.copies) {
        rate.footprint = 512'000;
    }
    auto near = rates.copies;
    for (auto& rate : near) {
        rate.footprint = 32'000;
        rate.bytes_per_second *= 4;
    }
    rates.copies.insert(rates.copies.end(), near.begin(), near.end());
    const auto workload = one_tensor(1);
    const auto plan = direct_plan(workload, 1);
    const program::Schedule schedule{plan, workload, 1};
    EXPECT_NEAR(predict_host(schedule, rates).value(), 33e-6, 1e-9);
}

/// Where 8 takers of one source, one of which reads it anew, copy at 2 GB/s and one taker at 1 GB/s, the other seven
/// take (8 / 2 - 1) / 7 = 3 / 7 ns a byte. Five takers of 64,000 bytes: 64 + 4 * 64 * 3 / 7 = 173.714 us.
TEST(HostRates, PredictsWhatWasJustReadAtTheRateOfTheCache) {
    auto rates = round_rates();
    for (auto& rate : rates.copies) {
        rate.bytes_per_second *= rate.pattern == CopyPattern::kRepeat ? 2 : 1;
    }
    const auto workload = one_tensor(5);
    const auto plan = direct_plan(workload, 5);
    const program::Schedule schedule{plan, workload, 1};
    EXPECT_NEAR(predict_host(schedule, rates).value(), 174.714e-6, 1e-9);
}

/// 64 KiB hold 8 runs of up to 4 KiB between two ranks and two, and 36 of up to 1 KiB between two and 16.
TEST(HostRates, AreProbedForEachPatternAndThreadsWithinTheMemoryAllowed) {
    double told = 0.0;
    const auto rates =
        probe_host(2, Bytes{std::uint64_t{1} << 16U}, [&](double done) { told = done; }).value();
    EXPECT_EQ(rates.copies.size(), 2U * (5U + 5U + 4U));
    EXPECT_TRUE(std::ranges::all_of(rates.copies, [](const CopyRate& rate) {
        return rate.bytes_per_second > 0 && rate.footprint == 1 << 16;
    }));
    EXPECT_EQ(told, 1.0);
    EXPECT_GT(rates.wave, Seconds{});
    EXPECT_GT(rates.copy, Seconds{});
    EXPECT_GT(rates.yardstick, Seconds{});
}

}  // namespace
}  // namespace refit::exec
