// SPDX-License-Identifier: Apache-2.0
#include "refit/jitter.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/flow_run.hpp"
#include "refit/methods.hpp"

namespace refit {
namespace {

struct Job {
    Scenario scenario;
    TaskGraph graph;
};

Job job_of(Method method, const std::string& name) {
    auto scenario = shipped_scenario(name);
    const auto workload = Workload::make(scenario);
    auto graph = make_task_graph(make_plan(method, scenario, workload).value(), workload, scenario);
    return {std::move(scenario), std::move(graph)};
}

JitterTimes sampled(const Job& job, const Jitter& jitter) {
    return sample_jitter(job.graph, job.scenario.cluster, jitter).value();
}

TEST(Jitter, WithoutSpreadEverySampleIsTheRunItself) {
    const auto job = job_of(Method::kHybrid, "nemotron-ultra-gb200");
    const auto times = sampled(job, {0.0, 0.0, 3, 7});
    const auto once = run_flows(job.graph.network).value().makespan;
    for (const auto seconds : times.seconds) {
        EXPECT_NEAR(seconds, once, 1e-9 * once);
    }
}

TEST(Jitter, TheSameSeedGivesTheSameSamples) {
    const auto job = job_of(Method::kDirect, "reshard-two-domains");
    EXPECT_EQ(sampled(job, {0.05, 0.1, 20, 7}).seconds, sampled(job, {0.05, 0.1, 20, 7}).seconds);
    EXPECT_NE(sampled(job, {0.05, 0.1, 20, 7}).seconds, sampled(job, {0.05, 0.1, 20, 8}).seconds);
}

// Direct, two domains: the senders' NICs bind, 16 x 2,147,483,648 B over each, and all four must end: what
// counts is the slowest of four, whose logarithm has the median m with F(m)^4 = 1/2: F(m) = 0.8409, m = 0.998
// spreads above the mean.
TEST(Jitter, TheSlowestOfAClassDecides) {
    const auto job = job_of(Method::kDirect, "reshard-two-domains");
    const auto fixed = 0.146 + 0.33e-3;
    const auto moving = 16.0 * 2'147'483'648.0 / 47e9;
    const auto times = sampled(job, {0.05, 0.0, 2001, 11});
    EXPECT_NEAR((times.quantile(0.5) - fixed) / moving, std::exp(0.05 * 0.998), 0.004);
    // The 95 % point of the slowest of four: F = 0.95^(1/4) = 0.98726, 2.234 spreads.
    EXPECT_NEAR((times.quantile(0.95) - fixed) / moving, std::exp(0.05 * 2.234), 0.012);
}

// Control is a barrier over 20 hosts: the median of the largest of 20 lies where F^20 = 1/2, F =
// 0.96594, 1.824 spreads.
TEST(Jitter, HostsWaitForTheSlowestOfAll) {
    const auto job = job_of(Method::kDirect, "reshard-two-domains");
    const auto moving = 16.0 * 2'147'483'648.0 / 47e9;
    const auto times = sampled(job, {0.0, 0.2, 2001, 3});
    EXPECT_NEAR(times.quantile(0.5) - moving, 0.146 * std::exp(0.2 * 1.824), 0.004);
}

TEST(Jitter, MoreSpreadIsSlower) {
    const auto job = job_of(Method::kHybrid, "nemotron-ultra-gb200");
    const auto median = [&](double spread) { return sampled(job, {spread, spread, 15, 5}).quantile(0.5); };
    const auto none = median(0.0);
    const auto some = median(0.05);
    EXPECT_GT(some, none);
    EXPECT_GT(median(0.2), some);
}

TEST(Jitter, StopsWhenCancelled) {
    const auto job = job_of(Method::kDirect, "reshard-two-domains");
    EXPECT_FALSE(
        sample_jitter(job.graph, job.scenario.cluster, {0.1, 0.1, 5, 1}, [] { return true; }).has_value());
}

}  // namespace
}  // namespace refit
