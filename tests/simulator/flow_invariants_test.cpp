// SPDX-License-Identifier: Apache-2.0
// What holds for every run, seen from the courses of the rates alone.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "random_network.hpp"
#include "refit/flow_run.hpp"

namespace refit {
namespace {

using testing_support::random_network;
using testing_support::Variety;

constexpr double kClose = 1e-9;

/// The rate of a link just after a time.
double rate_at(const FlowNetwork& network, std::uint32_t link, double time) {
    double rate = network.rate(link);
    double since = -1.0;
    for (const auto& change : network.changes()) {
        if (change.link == link && change.at.value() <= time && change.at.value() >= since) {
            rate = change.rate.value_or(0.0);
            since = change.at.value();
        }
    }
    return rate;
}

/// A link's load, and the highest level (rate a unit of weight) among its flows.
struct Load {
    double bytes_per_second = 0.0;
    double level = 0.0;
};

std::vector<Load> loads_at(const FlowNetwork& network, const std::vector<const RateSegment*>& running) {
    std::vector<Load> loads(network.links());
    for (const auto* segment : running) {
        for (const auto& use : network.uses(segment->flow)) {
            auto& load = loads[use.link];
            load.bytes_per_second += use.per_byte * segment->rate;
            load.level = std::max(load.level, segment->rate / network.flow(segment->flow).weight);
        }
    }
    return loads;
}

/// No link is overloaded; and each flow runs at its cap, or over a full link on which no flow has a higher
/// level: that is what max-min fair means, and that nothing is left unused.
void expect_fair(const FlowNetwork& network, const FlowRun& run, double time) {
    std::vector<const RateSegment*> running;
    for (const auto& segment : run.segments) {
        if (segment.from.value() <= time && time < segment.to.value()) {
            running.push_back(&segment);
        }
    }
    const auto loads = loads_at(network, running);
    for (std::uint32_t link = 0; link < network.links(); ++link) {
        const auto rate = rate_at(network, link, time);
        ASSERT_LE(loads[link].bytes_per_second, rate * (1.0 + kClose)) << "link " << link << " at " << time;
    }
    for (const auto* segment : running) {
        const auto& flow = network.flow(segment->flow);
        ASSERT_LE(segment->rate, flow.rate_cap * (1.0 + kClose));
        if (segment->limit == RateSegment::kOwnCap) {
            ASSERT_NEAR(segment->rate, flow.rate_cap, kClose * flow.rate_cap) << "flow " << segment->flow;
            continue;
        }
        const auto& load = loads[segment->limit];
        const auto rate = rate_at(network, segment->limit, time);
        ASSERT_NEAR(load.bytes_per_second, rate, kClose * rate) << "flow " << segment->flow << " at " << time;
        ASSERT_NEAR(segment->rate / flow.weight, load.level, kClose * load.level)
            << "flow " << segment->flow << " at " << time;
    }
}

/// The courses cover each flow from its start to its end without a gap, and carry its bytes.
void expect_whole(const FlowNetwork& network, const FlowRun& run) {
    std::size_t next = 0;
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        double bytes = 0.0;
        double at = run.start[flow];
        for (; next < run.segments.size() && run.segments[next].flow == flow; ++next) {
            const auto& segment = run.segments[next];
            ASSERT_EQ(segment.from.value(), at) << "flow " << flow;
            at = segment.to.value();
            bytes += segment.rate * (segment.to - segment.from).value();
        }
        ASSERT_EQ(at, run.end[flow]) << "flow " << flow;
        ASSERT_NEAR(bytes, network.flow(flow).bytes, kClose * network.flow(flow).bytes) << "flow " << flow;
        ASSERT_LE(run.end[flow], run.makespan);
    }
    ASSERT_EQ(next, run.segments.size());
}

/// A link cannot carry its bytes faster than at its best rate, nor before the first flow may start.
void expect_no_faster_than_ports(const FlowNetwork& network, const FlowRun& run) {
    std::vector<double> bytes(network.links(), 0.0);
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        for (const auto& use : network.uses(flow)) {
            bytes[use.link] += use.per_byte * network.flow(flow).bytes;
        }
    }
    for (std::uint32_t link = 0; link < network.links(); ++link) {
        double best = network.rate(link);
        for (const auto& change : network.changes()) {
            best = change.link == link ? std::max(best, change.rate.value_or(0.0)) : best;
        }
        ASSERT_GE(run.makespan * (1.0 + kClose), bytes[link] / best) << "link " << link;
    }
}

void expect_invariants(std::uint64_t seed, const Variety& variety) {
    const auto network = random_network(seed, variety);
    const auto run = run_flows(network, {.has_quotient = seed % 2 == 0, .has_segments = true});
    if (!run) {
        return;
    }
    std::set<double> times;
    for (const auto& segment : run->segments) {
        times.insert(segment.from.value());
    }
    for (const auto time : times) {
        expect_fair(network, *run, time);
    }
    expect_whole(network, *run);
    expect_no_faster_than_ports(network, *run);
}

TEST(FlowInvariants, HoldAtEveryEventOfRandomNetworks) {
    for (std::uint64_t seed = 50'001; seed <= 51'000; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        expect_invariants(seed, {.max_links = 8, .max_flows = 20, .max_uses = 5});
        if (HasFatalFailure()) {
            return;
        }
    }
}

TEST(FlowInvariants, AreTheSameBytesInEveryRun) {
    const auto network = random_network(7, {.max_links = 20, .max_flows = 100});
    const auto first = run_flows(network);
    const auto second = run_flows(network);
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->end, second->end);
    EXPECT_EQ(first->events, second->events);
}

TEST(FlowInvariants, DoNotChangeWithTheCourseBeingKept) {
    for (std::uint64_t seed = 60'001; seed <= 60'200; ++seed) {
        const auto network = random_network(seed);
        const auto plain = run_flows(network);
        const auto kept = run_flows(network, {.has_segments = true});
        ASSERT_EQ(plain.has_value(), kept.has_value());
        if (plain) {
            EXPECT_EQ(plain->end, kept->end);
        }
    }
}

/// The network with all rates and caps times `factor`.
FlowNetwork faster(const FlowNetwork& network, double factor) {
    FlowNetwork all;
    for (std::uint32_t link = 0; link < network.links(); ++link) {
        all.add_link(network.rate(link) * factor);
    }
    for (std::uint32_t number = 0; number < network.flows(); ++number) {
        auto flow = network.flow(number);
        flow.rate_cap *= factor;
        all.add_flow(flow, network.uses(number), network.after(number));
    }
    return all;
}

TEST(FlowMonotony, HoldsForOneFactorOnAllRates) {
    // Without latencies and times of their own, all ends scale with 1 / factor.
    for (std::uint64_t seed = 70'001; seed <= 70'200; ++seed) {
        const auto drawn = random_network(seed, {.has_order = false, .has_changes = false});
        const auto slow = run_flows(drawn);
        const auto fast = run_flows(faster(drawn, 1.25));
        ASSERT_TRUE(slow && fast);
        for (std::uint32_t flow = 0; flow < drawn.flows(); ++flow) {
            ASSERT_NEAR(fast->end[flow], slow->end[flow] / 1.25, kClose * slow->end[flow]) << "seed " << seed;
        }
    }
}

TEST(FlowMonotony, HoldsForASingleBottleneck) {
    // All flows over one link that is the slowest for each: any more of it makes every flow end sooner.
    for (std::uint64_t seed = 80'001; seed <= 80'200; ++seed) {
        const auto drawn = random_network(seed, {.max_links = 1, .has_caps = false, .has_changes = false});
        auto wider = faster(drawn, 1.0 + static_cast<double>(seed % 7 + 1) / 10.0);
        const auto slow = run_flows(drawn);
        const auto fast = run_flows(wider);
        ASSERT_TRUE(slow && fast);
        for (std::uint32_t flow = 0; flow < drawn.flows(); ++flow) {
            ASSERT_LE(fast->end[flow], slow->end[flow] * (1.0 + kClose))
                << "seed " << seed << " flow " << flow;
        }
    }
}

TEST(FlowMonotony, IsBrokenByMaxMinItselfWhereTwoLinksBind) {
    // x over links 0 and 1, y over link 1 (10 B/s), z of 40 B alone at 1 B/s, but after y.
    // Link 0 at 1 B/s: y runs at 9 B/s, its 90 B end at 10 s, z at 50 s; x's 50 B take 50 s. All over at 50
    // s. Link 0 at 5 B/s: y shares evenly, 5 B/s, until x is over at 10 s; its other 40 B end at 14 s, z at
    // 54 s.
    const auto makespan = [](double rate) {
        FlowNetwork network;
        network.add_link(rate);
        network.add_link(10.0);
        network.add_flow({.bytes = 50.0}, std::array{LinkUse{0}, LinkUse{1}});
        network.add_flow({.bytes = 90.0}, std::array{LinkUse{1}});
        network.add_flow({.bytes = 40.0, .rate_cap = 1.0}, {}, std::array{1U});
        return run_flows(network)->makespan;
    };
    EXPECT_DOUBLE_EQ(makespan(1.0), 50.0);
    EXPECT_DOUBLE_EQ(makespan(5.0), 54.0);
}

}  // namespace
}  // namespace refit
