// SPDX-License-Identifier: Apache-2.0
#include "quotient.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "golden_flows.hpp"
#include "random_network.hpp"
#include "refit/flow_run.hpp"

namespace refit::flow {
namespace {

using testing_support::random_network;

std::size_t classes_of(const FlowNetwork& network) {
    const auto quotient = find_quotient(network, nullptr);
    return quotient ? quotient->network.flows() : network.flows();
}

/// Two senders with a flow to each of two receivers: all alike.
FlowNetwork square(double odd_bytes = 8.0) {
    FlowNetwork network;
    for (int i = 0; i < 4; ++i) {
        network.add_link(4.0);
    }
    for (const std::uint32_t from : {0U, 1U}) {
        for (const std::uint32_t to : {2U, 3U}) {
            network.add_flow({.bytes = from + to == 4 ? odd_bytes : 8.0},
                             std::array{LinkUse{from}, LinkUse{to}});
        }
    }
    return network;
}

TEST(Quotient, MergesFlowsAndLinksThatSymmetryMakesAlike) {
    // All four links carry two flows, so one link is left; its one flow stands for two there, so its use is
    // 2, and it runs at 4 / 2 = 2 B/s.
    const auto quotient = find_quotient(square(), nullptr);
    ASSERT_TRUE(quotient.has_value());
    EXPECT_EQ(quotient->flow_class, (std::vector<std::uint32_t>{0, 0, 0, 0}));
    EXPECT_EQ(quotient->link_class, (std::vector<std::uint32_t>{0, 0, 0, 0}));
    ASSERT_EQ(quotient->network.flows(), 1U);
    ASSERT_EQ(quotient->network.uses(0).size(), 1U);
    EXPECT_EQ(quotient->network.uses(0)[0].per_byte, 2.0);
    EXPECT_EQ(run_flows(square())->end, (std::vector<double>{4.0, 4.0, 4.0, 4.0}));
}

TEST(Quotient, TellsFlowsApartByTheirNeighboursNeighbours) {
    // One flow of the square has other bytes: so its sender, its receiver, and hence their other flows
    // differ; three classes of four flows are too many to gain by.
    EXPECT_FALSE(find_quotient(square(9.0), nullptr).has_value());
}

TEST(Quotient, TellsFlowsApartByWhatTheyFollow) {
    // Four pairs of a first and a second flow, each on a link of its own. The second of the last pair does
    // not wait.
    FlowNetwork network;
    for (std::uint32_t pair = 0; pair < 4; ++pair) {
        network.add_link(1.0);
        network.add_flow({.bytes = 1.0}, std::array{LinkUse{pair}});
        const std::array after{2 * pair};
        network.add_flow(
            {.bytes = 1.0},
            std::array{LinkUse{pair}},
            pair == 3 ? std::span<const std::uint32_t>{} : std::span<const std::uint32_t>{after});
    }
    // First and second of the three pairs, and the two of the last, which are alike.
    EXPECT_EQ(classes_of(network), 3U);
    EXPECT_EQ(run_flows(network)->end, (std::vector<double>{1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 2.0, 2.0}));
}

TEST(Quotient, TellsLinksApartByTheirChanges) {
    FlowNetwork network;
    for (std::uint32_t link = 0; link < 6; ++link) {
        network.add_link(1.0);
        network.add_flow({.bytes = 2.0}, std::array{LinkUse{link}});
    }
    network.add_change({Seconds{1.0}, 2, 0.5});
    network.add_change({Seconds{1.0}, 4, 0.5});
    EXPECT_EQ(classes_of(network), 2U);
    EXPECT_EQ(run_flows(network)->end, (std::vector<double>{2.0, 2.0, 3.0, 2.0, 3.0, 2.0}));
}

TEST(Quotient, FindsTheClassesOfRefits) {
    EXPECT_EQ(classes_of(testing_support::golden_network("W2")), 256U);
    EXPECT_EQ(classes_of(testing_support::golden_network("W2e")), 1U);
    EXPECT_EQ(classes_of(testing_support::golden_network("W2c")), 2048U);
    EXPECT_EQ(classes_of(testing_support::golden_network("W1")), 8192U);
}

/// Copies of a network whose first link they all share, so that no two copies fall apart.
FlowNetwork coupled_copies(const FlowNetwork& network, std::uint32_t copies) {
    FlowNetwork all;
    all.add_link(network.rate(0) * copies);
    for (std::uint32_t link = 1; link < network.links(); ++link) {
        for (std::uint32_t copy = 0; copy < copies; ++copy) {
            all.add_link(network.rate(link));
        }
    }
    const auto link_in = [&](std::uint32_t link, std::uint32_t copy) {
        return link == 0 ? 0 : 1 + (link - 1) * copies + copy;
    };
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        for (std::uint32_t copy = 0; copy < copies; ++copy) {
            std::vector<LinkUse> uses;
            for (const auto& use : network.uses(flow)) {
                uses.push_back({link_in(use.link, copy), use.per_byte});
            }
            if (copy % 2 == 1) {
                std::reverse(uses.begin(), uses.end());
            }
            std::vector<std::uint32_t> after;
            for (const auto before : network.after(flow)) {
                after.push_back(before * copies + copy);
            }
            all.add_flow(network.flow(flow), uses, after);
        }
    }
    for (const auto& change : network.changes()) {
        for (std::uint32_t copy = 0; copy < (change.link == 0 ? 1 : copies); ++copy) {
            auto rate = change.rate;
            if (rate && change.link == 0) {
                *rate *= copies;
            }
            all.add_change({change.at, link_in(change.link, copy), rate});
        }
    }
    return all;
}

TEST(Quotient, LeavesTimesAndSegmentsAsTheyAre) {
    for (std::uint64_t seed = 1; seed <= 500; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const auto network = coupled_copies(random_network(seed), 3);
        const auto quotient = find_quotient(network, nullptr);
        ASSERT_TRUE(quotient.has_value());
        ASSERT_LE(3 * quotient->network.flows(), network.flows());
        const auto plain = run_flows(network, {.has_quotient = false, .has_segments = true});
        const auto merged = run_flows(network, {.has_quotient = true, .has_segments = true});
        ASSERT_EQ(plain.has_value(), merged.has_value());
        if (!plain) {
            EXPECT_EQ(plain.error().front().message, merged.error().front().message);
            continue;
        }
        for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
            ASSERT_NEAR(plain->end[flow], merged->end[flow], 1e-12 * plain->end[flow]);
            ASSERT_NEAR(plain->start[flow], merged->start[flow], 1e-12 * plain->start[flow]);
        }
        double moved = 0.0;
        double bytes = 0.0;
        for (const auto& segment : merged->segments) {
            moved += segment.rate * (segment.to - segment.from).value();
            if (segment.limit != RateSegment::kOwnCap) {
                const auto uses = network.uses(segment.flow);
                ASSERT_TRUE(std::any_of(
                    uses.begin(), uses.end(), [&](const auto& use) { return use.link == segment.limit; }));
            }
        }
        for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
            bytes += network.flow(flow).bytes;
        }
        ASSERT_NEAR(moved, bytes, 1e-9 * bytes);
    }
}

}  // namespace
}  // namespace refit::flow
