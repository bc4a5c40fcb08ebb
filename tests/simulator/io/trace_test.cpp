// SPDX-License-Identifier: Apache-2.0
#include "refit/io/trace.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../../shipped.hpp"
#include "refit/link_rates.hpp"
#include "refit/methods.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;
using Thread = std::pair<int, int>;

struct Simulated {
    Scenario scenario;
    Simulation result;
};

Simulated simulated(Method method, const std::string& name) {
    auto scenario = shipped_scenario(name);
    const auto workload = Workload::make(scenario);
    const auto plan = make_plan(method, scenario, workload).value();
    SimulateOptions options;
    options.has_segments = true;
    auto result = simulate(plan, workload, scenario, options).value();
    return {std::move(scenario), std::move(result)};
}

struct Traced {
    TraceSize size;
    std::string text;
    Json events;
};

Traced traced(const Simulated& job, const TraceOptions& options = {}) {
    Traced trace;
    trace.size = write_trace(
        job.result,
        job.scenario.cluster,
        [&](std::string_view piece) {
            trace.text += piece;
            return true;
        },
        options);
    trace.events = Json::parse(trace.text).at("traceEvents");
    return trace;
}

/// Whole nanoseconds.
std::int64_t time_of(const Json& event, const char* key) {
    return std::llround(event.at(key).get<double>() * 1e3);
}

Thread thread_of(const Json& event) {
    return {event.at("pid").get<int>(), event.at("tid").get<int>()};
}

std::map<Thread, std::vector<std::pair<std::int64_t, std::int64_t>>> slices_of(const Json& events) {
    std::map<Thread, std::vector<std::pair<std::int64_t, std::int64_t>>> slices;
    for (const auto& event : events) {
        if (event.at("ph") == "X") {
            const auto from = time_of(event, "ts");
            slices[thread_of(event)].emplace_back(from, from + time_of(event, "dur"));
        }
    }
    return slices;
}

/// Slices that begin inside another and end after it.
std::size_t crossings(const Json& events) {
    std::size_t count = 0;
    for (auto& [thread, slices] : slices_of(events)) {
        std::vector<std::int64_t> open;
        for (const auto& [from, to] : slices) {
            while (!open.empty() && open.back() <= from) {
                open.pop_back();
            }
            count += !open.empty() && to > open.back() ? 1U : 0U;
            open.push_back(to);
        }
        count += std::ranges::is_sorted(slices, {}, [](const auto& slice) { return slice.first; }) ? 0U : 1U;
    }
    return count;
}

class TraceOf : public testing::TestWithParam<std::pair<Method, const char*>> {};

TEST_P(TraceOf, NestsItsSlicesOnEveryThread) {
    const auto trace = traced(simulated(GetParam().first, GetParam().second));
    EXPECT_TRUE(trace.size.is_whole);
    EXPECT_EQ(crossings(trace.events), 0U);
    std::size_t slices = 0;
    for (const auto& [thread, own] : slices_of(trace.events)) {
        slices += own.size();
    }
    EXPECT_EQ(slices, trace.size.slices);
}

// The innermost slices stand for every task of at least a nanosecond, once, so their bytes are the tasks'.
TEST_P(TraceOf, HasEveryTaskAndItsBytesOnce) {
    const auto job = simulated(GetParam().first, GetParam().second);
    const auto trace = traced(job);
    std::uint64_t tasks = 0;
    double bytes = 0.0;
    for (const auto& event : trace.events) {
        const bool is_innermost = event.at("ph") == "X" && event.at("args").contains("limited by");
        tasks += is_innermost ? event.at("args").at("tasks").get<std::uint64_t>() : 0;
        bytes += is_innermost && event.at("args").contains("bytes")
                     ? event.at("args").at("bytes").get<double>()
                     : 0.0;
    }
    std::uint64_t expected_tasks = 0;
    double expected_bytes = 0.0;
    for (std::size_t task = 0; task < job.result.graph.tasks.size(); ++task) {
        const bool is_drawn =
            std::llround(job.result.run.end[task] * 1e9) > std::llround(job.result.run.start[task] * 1e9);
        expected_tasks += is_drawn ? 1 : 0;
        expected_bytes += is_drawn ? job.result.graph.tasks[task].bytes : 0.0;
    }
    EXPECT_EQ(tasks, expected_tasks);
    EXPECT_NEAR(bytes, expected_bytes, 1e-6 * expected_bytes);
}

// A counter's integral is what the link carried: GB/s times ns is bytes. Times are rounded to ns.
TEST_P(TraceOf, CountsTheBytesOfEveryLink) {
    const auto job = simulated(GetParam().first, GetParam().second);
    TraceOptions options;
    options.most_links = 100'000;
    const auto trace = traced(job, options);
    std::map<std::string, std::pair<std::int64_t, double>> last;
    std::map<std::string, double> integrals;
    for (const auto& event : trace.events) {
        if (event.at("ph") == "C") {
            const auto name = event.at("name").get<std::string>();
            const auto at = time_of(event, "ts");
            auto& [before, rate] = last[name];
            integrals[name] += static_cast<double>(at - before) * rate;
            EXPECT_GE(at, before);
            before = at;
            rate = event.at("args").at("GB/s").get<double>();
        }
    }
    std::map<std::string, double> expected;
    std::map<std::pair<std::string, std::uint32_t>, int> count;
    for (const auto& usage : job.result.links) {
        auto name = describe_link(job.result.graph, usage.link, job.scenario.cluster);
        const auto number = ++count[{name, job.result.graph.links[usage.link].section}];
        name += number > 1 ? " (" + std::to_string(number) + ")" : "";
        expected[name] += usage.bytes;
    }
    ASSERT_EQ(integrals.size(), expected.size());
    for (const auto& [name, bytes] : expected) {
        EXPECT_NEAR(integrals.at(name), bytes, 1e-4 * bytes) << name;
        EXPECT_EQ(last.at(name).second, 0.0) << name;
    }
}

TEST_P(TraceOf, IsTheSameForTheSameSimulation) {
    const auto job = simulated(GetParam().first, GetParam().second);
    EXPECT_EQ(traced(job).text, traced(job).text);
}

INSTANTIATE_TEST_SUITE_P(Methods,
                         TraceOf,
                         testing::Values(std::pair{Method::kHybrid, "qwen3-235b-h100"},
                                         std::pair{Method::kGatherBroadcast, "qwen3-235b-h100"},
                                         std::pair{Method::kHybrid, "reshard-two-domains"},
                                         std::pair{Method::kOptimal, "reshard-two-domains"}),
                         [](const auto& row) {
                             std::string name =
                                 std::string{name_of(row.param.first)} + "_" + row.param.second;
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

// Each arrow begins and ends inside a slice of its thread, and points forward.
TEST(Trace, DrawsItsArrowsFromSliceToSlice) {
    const auto trace = traced(simulated(Method::kHybrid, "qwen3-235b-h100"));
    const auto slices = slices_of(trace.events);
    std::map<int, std::int64_t> starts;
    std::size_t ends = 0;
    for (const auto& event : trace.events) {
        if (event.at("ph") != "s" && event.at("ph") != "f") {
            continue;
        }
        const auto at = time_of(event, "ts");
        const auto& own = slices.at(thread_of(event));
        EXPECT_TRUE(std::ranges::any_of(
            own, [&](const auto& slice) { return slice.first <= at && at <= slice.second; }));
        if (event.at("ph") == "s") {
            starts[event.at("id").get<int>()] = at;
        } else {
            EXPECT_GE(at, starts.at(event.at("id").get<int>()));
            ++ends;
        }
    }
    EXPECT_EQ(ends, trace.size.arrows);
    EXPECT_EQ(starts.size(), ends);
    EXPECT_GT(ends, 0U);
}

// A slice for each pack would be too many for a limit of 200; several packs share one then, and no task is
// lost.
TEST(Trace, FoldsItemsAboveALimitAndSaysSo) {
    const auto job = simulated(Method::kGatherBroadcast, "qwen3-235b-h100");
    TraceOptions options;
    options.most_slices = 200;
    const auto folded = traced(job, options);
    EXPECT_LE(folded.size.slices, 220U);  // the stage's bars come on top
    EXPECT_GT(folded.size.merged, 1U);
    EXPECT_FALSE(folded.size.has_activities);
    EXPECT_EQ(crossings(folded.events), 0U);
    EXPECT_EQ(traced(job).size.merged, 1U);
    EXPECT_TRUE(traced(job).size.has_activities);
}

// Four trainers send to four generators; with a limit of one bar each sender's messages become one.
TEST(Trace, DrawsTheMessagesOfARankAsOneAboveALimit) {
    const auto job = simulated(Method::kOptimal, "reshard-one-domain");
    const auto senders = [&](const Json& events) {
        std::map<Thread, int> bars;
        for (const auto& event : events) {
            if (event.at("ph") == "X" &&
                event.at("name").get<std::string>().find("message") != std::string::npos) {
                ++bars[thread_of(event)];
            }
        }
        return bars;
    };
    TraceOptions options;
    options.most_hops = 1;
    const auto folded = traced(job, options);
    EXPECT_LT(senders(folded.events).size(), senders(traced(job).events).size());
    EXPECT_LE(senders(folded.events).size(), 8U);
    EXPECT_GT(folded.size.merged, 1U);
    EXPECT_EQ(crossings(folded.events), 0U);
}

TEST(Trace, SharesCountersBySideAboveALimit) {
    const auto job = simulated(Method::kHybrid, "qwen3-235b-h100");
    TraceOptions options;
    options.most_links = 1;
    options.most_points = 50;
    std::map<std::string, int> names;
    for (const auto& event : traced(job, options).events) {
        if (event.at("ph") == "C") {
            ++names[event.at("name").get<std::string>()];
        }
    }
    ASSERT_TRUE(names.contains("NIC out, sum of trainers"));
    for (const auto& [name, points] : names) {
        EXPECT_LE(points, 51) << name;
    }
}

TEST(Trace, StopsWhereItsSinkWantsNoMore) {
    const auto job = simulated(Method::kGatherBroadcast, "qwen3-235b-h100");
    int pieces = 0;
    const auto size =
        write_trace(job.result, job.scenario.cluster, [&](std::string_view) { return ++pieces < 2; });
    EXPECT_FALSE(size.is_whole);
    EXPECT_EQ(pieces, 2);
}

// 10 bytes/s in the first second, 30 in the second: means of 10 and 30 over halves, 20 over all, and over
// quarters.
TEST(LinkRates, BinsKeepTheIntegral) {
    const std::vector<RatePoint> course{{0.0, 10.0}, {1.0, 30.0}, {2.0, 0.0}};
    EXPECT_EQ(binned(course, 2.0, 2), (std::vector<double>{10.0, 30.0}));
    EXPECT_EQ(binned(course, 2.0, 1), (std::vector<double>{20.0}));
    EXPECT_EQ(binned(course, 4.0, 2), (std::vector<double>{20.0, 0.0}));
    EXPECT_EQ(binned(course, 2.0, 4), (std::vector<double>{10.0, 10.0, 30.0, 30.0}));
    EXPECT_EQ(binned({}, 2.0, 2), (std::vector<double>{0.0, 0.0}));
}

}  // namespace
}  // namespace refit::io
