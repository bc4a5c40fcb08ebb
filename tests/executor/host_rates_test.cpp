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

TEST(HostRates, AreProbedForEachPatternAndThreadsWithinTheMemoryAllowed) {
    const auto rates = probe_host(2, Bytes{std::uint64_t{1} << 16U}).value();
    EXPECT_EQ(rates.copies.size(), 2U * 3U * 6U * 3U);
    EXPECT_TRUE(std::ranges::all_of(rates.copies, [](const CopyRate& rate) {
        return rate.bytes_per_second > 0 && rate.footprint <= 1 << 16;
    }));
    EXPECT_GT(rates.wave, Seconds{});
    EXPECT_GT(rates.copy, Seconds{});
}

}  // namespace
}  // namespace refit::exec
