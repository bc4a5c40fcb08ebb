// SPDX-License-Identifier: Apache-2.0
#include "refit/optimal.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "fluid.hpp"
#include "random_work.hpp"
#include "refit/methods.hpp"
#include "study.hpp"

namespace refit {
namespace {

/// Relays of a case with its certificate: port time over bound.
struct Solved {
    SliceTable slices;
    RelayTable relays;
    Seconds bound;
    double certificate = 0.0;
};

Solved solve(const study::Layout& layout, const Fabric& fabric) {
    Solved solved{SliceTable::make(study::workload_of(layout), layout.trainers()), {}, {}, 0.0};
    solved.relays = optimal_relays(solved.slices, fabric);
    solved.bound = lower_bound(solved.slices, fabric).time;
    solved.certificate = busiest_port(port_seconds(solved.relays, fabric)).time / solved.bound;
    return solved;
}

double nvlink_bytes(const RelayTable& relays, const Fabric& fabric) {
    double sum = 0.0;
    for (std::size_t hop = 0; hop < relays.size(); ++hop) {
        const bool is_local = fabric.domain_of(relays.source[hop]) == fabric.domain_of(relays.destination[hop]);
        sum += is_local ? static_cast<double>(relays.messages[relays.message[hop]].bytes) : 0.0;
    }
    return sum;
}

/// Who gets a message, and from whom it starts.
struct Journey {
    std::set<std::uint32_t> holders;
    std::multiset<std::uint32_t> reached;
};

std::vector<Journey> journeys_of(const RelayTable& relays) {
    std::vector<Journey> journeys(relays.messages.size());
    for (std::size_t hop = 0; hop < relays.size(); ++hop) {
        const auto parent = relays.follows[hop];
        auto& journey = journeys[relays.message[hop]];
        journey.reached.insert(relays.destination[hop]);
        if (parent == RelayTable::kNone) {
            journey.holders.insert(relays.source[hop]);
            continue;
        }
        EXPECT_LT(parent, hop);
        EXPECT_EQ(relays.message[parent], relays.message[hop]);
        EXPECT_EQ(relays.destination[parent], relays.source[hop]);
    }
    return journeys;
}

/// The messages of each slice, which are together all its bytes, start at its holders and reach each receiver, and no
/// rank twice. The planner takes the slices by size; a slip in that shows as sums that differ.
void expect_delivery(const RelayTable& relays, const SliceTable& slices) {
    const auto journeys = journeys_of(relays);
    std::vector<Slice> sorted{slices.slices().begin(), slices.slices().end()};
    std::ranges::stable_sort(sorted, std::greater{}, &Slice::bytes);
    std::size_t message = 0;
    for (const auto& slice : sorted) {
        const auto& holders = slices.rank_set(slice.holders);
        std::uint64_t bytes = 0;
        for (; bytes < slice.bytes && message < journeys.size(); ++message) {
            const auto& journey = journeys[message];
            bytes += relays.messages[message].bytes;
            for (const auto rank : journey.holders) {
                EXPECT_TRUE(std::ranges::binary_search(holders, rank)) << "rank " << rank << " has no such message";
            }
            for (const auto rank : journey.reached) {
                EXPECT_EQ(journey.reached.count(rank), 1U) << "rank " << rank << " gets message " << message << " twice";
            }
            for (const auto rank : slices.rank_set(slice.receivers)) {
                EXPECT_TRUE(journey.reached.contains(rank)) << "rank " << rank << " misses message " << message;
            }
        }
        EXPECT_EQ(bytes, slice.bytes);
    }
    EXPECT_EQ(message, journeys.size());
}

class Study : public testing::TestWithParam<study::Case> {};

TEST_P(Study, ReachesTheBoundOnEveryPort) {
    const auto solved = solve(GetParam().layout, GetParam().fabric);
    const bool is_partly_filled = GetParam().name == "UltraContiguousRacks";
    EXPECT_GE(solved.certificate, 1.0 - 1e-9);
    EXPECT_LE(solved.certificate, is_partly_filled ? 1.02 : 1.001);
    expect_delivery(solved.relays, solved.slices);
}

TEST_P(Study, RunsPacedInThePortTimeAndAChunkForEachFurtherHop) {
    const auto solved = solve(GetParam().layout, GetParam().fabric);
    constexpr std::uint32_t kChunks = 20;
    const auto outcome = fluid::run_paced(solved.relays, GetParam().fabric, kChunks);
    EXPECT_LE(outcome.most_loaded, 1.0 + 1e-9);
    EXPECT_LE(outcome.makespan / outcome.port_time, 1.0 + (solved.relays.depth() - 1.0) / kChunks + 0.01);
    auto as_chunked = solved.relays;
    as_chunked.chunks = kChunks;
    EXPECT_NEAR(paced_time(as_chunked, GetParam().fabric).value(), outcome.makespan, 1e-9 * outcome.makespan);
}

INSTANTIATE_TEST_SUITE_P(Rows, Study, testing::ValuesIn(study::cases()), [](const auto& row) { return row.param.name; });

TEST(Optimal, NeedsNoRelayWhereBalancedHoldersReachTheBound) {
    // Each of 256 trainers holds a sixteenth of a stage; 8 engines of 32 on nodes of 8: every NIC sends and receives
    // as much, so each message goes straight from its holder.
    for (const auto& row : study::cases()) {
        if (row.name == "DeepSeekAllStagesNodes" || row.name == "QwenAllStagesNodes" || row.name == "KimiAllStagesNodes") {
            const auto solved = solve(row.layout, row.fabric);
            EXPECT_EQ(solved.relays.depth(), 1U) << row.name;
            EXPECT_EQ(nvlink_bytes(solved.relays, row.fabric), 0.0) << row.name;
        }
    }
}

TEST(Optimal, LeavesNvlinkAloneWhereEachDomainHasOneReceiver) {
    for (const auto& row : study::cases()) {
        if (row.name == "DeepSeekOneStageNodes" || row.name == "QwenOneStageNodes" || row.name == "KimiOneStageNodes") {
            EXPECT_EQ(nvlink_bytes(solve(row.layout, row.fabric).relays, row.fabric), 0.0) << row.name;
        }
    }
}

TEST(Optimal, CutsNoSliceWithoutNeed) {
    // 16 x 32 slices a stage; 8 engines with one receiver each want 8 ways into a column, which has 16 slices.
    const auto rows = study::cases();
    const auto& row = *std::ranges::find(rows, "DeepSeekOneStageNodes", &study::Case::name);
    EXPECT_EQ(solve(row.layout, row.fabric).relays.messages.size(), 512U);
}

TEST(Optimal, SendsNoCrumbsAndFewMessages) {
    // No message below 512 KiB unless a slice is. Slices stay whole where a column has as many as there are ways in, one a
    // receiver; but racks that are filled one after the other want smaller pieces.
    for (const auto& row : study::cases()) {
        const auto solved = solve(row.layout, row.fabric);
        std::uint64_t smallest_slice = ~std::uint64_t{0};
        for (const auto& slice : solved.slices.slices()) {
            smallest_slice = std::min(smallest_slice, slice.bytes);
        }
        for (const auto& message : solved.relays.messages) {
            EXPECT_GE(message.bytes, std::min<std::uint64_t>(smallest_slice, 1U << 19U)) << row.name;
        }
        const bool has_ways = solved.slices.slices().size() / row.layout.tp >= row.layout.dp;
        if (has_ways && row.name != "UltraContiguousRacks") {
            EXPECT_EQ(solved.relays.messages.size(), solved.slices.slices().size()) << row.name;
        }
    }
}

TEST(Optimal, FansOutInsideOneDomainByScatterAndExchange) {
    // Two trainers with two copies of 2 halves of 256 MiB and 16 receivers that want both, in one domain: what they
    // hold leaves them once, and the receivers exchange. Every receiver takes all: 256 MiB / 900 GB/s.
    const study::Layout layout{{8192, 16384}, 2, 2, 1, 1, 1, 16};
    const auto solved = solve(layout, study::contiguous(layout, 64, study::kGb200));
    EXPECT_NEAR(solved.bound.value(), 8192.0 * 16384 * 2 / 900e9, 1e-9);
    EXPECT_LE(solved.certificate, 1.07);
}

const study::Layout kDeepSeekStage{{256, 2048, 7168}, 16, 1, 16, 1, 32, 8};
const study::Layout kDeepSeekAll{{256, 2048, 7168}, 16, 1, 16, 16, 32, 8};
constexpr double kStageBytes = 256.0 * 2048 * 7168 * 2;

TEST(OptimalDegraded, ATrainersNicThatIsDownCostsAnEighthOfItsNode) {
    const auto fabric = study::apart(kDeepSeekStage, 8, study::kH100);
    const auto solved = solve(kDeepSeekStage, study::with_ports(fabric, {{3, {0.0, 0.0, study::kH100, study::kH100}}}));
    // Half of the stage leaves a node over 7 NICs.
    EXPECT_NEAR(solved.bound.value(), kStageBytes / 2.0 / (7 * 50e9), 1e-9);
    EXPECT_NEAR(solved.bound.value() * 1e3, 10.737, 0.0005);
    EXPECT_LE(solved.certificate, 1.01);
}

TEST(OptimalDegraded, ANicAtEightyPercentIsPlannedAround) {
    const auto fabric = study::apart(kDeepSeekStage, 8, study::kH100);
    const auto solved = solve(kDeepSeekStage, study::with_ports(fabric, {{3, {40e9, 40e9, study::kH100, study::kH100}}}));
    EXPECT_NEAR(solved.bound.value() * 1e3, 9.636, 0.0005);
    EXPECT_LE(solved.certificate, 1.05);
}

TEST(OptimalDegraded, AGeneratorsNicThatIsDownMatters) {
    const auto down = [](const study::Layout& layout) {
        return study::with_ports(study::apart(layout, 8, study::kH100),
                                 {{layout.trainers() + 5, {0.0, 0.0, study::kH100, study::kH100}}});
    };
    const auto one = solve(kDeepSeekStage, down(kDeepSeekStage));
    EXPECT_NEAR(one.bound.value() * 1e3, 9.395, 0.0005);
    EXPECT_LE(one.certificate, 1.01);
    const auto all = solve(kDeepSeekAll, down(kDeepSeekAll));
    EXPECT_NEAR(all.bound.value() * 1e3, 85.899, 0.0005);
    EXPECT_LE(all.certificate, 1.01);
}

TEST(OptimalDegraded, AStrayPartOfARackDoublesTheBound) {
    // 512 GPUs in racks of 72: the eighth rack has 8 generators, which want a quarter of every stage over 8 NICs.
    const auto solved = solve(kDeepSeekAll, study::contiguous(kDeepSeekAll, 72, study::kGb200));
    EXPECT_NEAR(solved.bound.value(), 16 * kStageBytes / 4.0 / (8 * 50e9), 1e-9);
    EXPECT_LE(solved.certificate, 1.01);
}

TEST(OptimalDegraded, UnequalEgressIsEnteredElsewhere) {
    // EP16 to TP8 x DP8, two nodes with a quarter of their egress.
    const study::Layout layout{{256, 2048, 7168}, 16, 1, 1, 1, 8, 8};
    std::vector<std::pair<std::uint32_t, GpuPorts>> slow;
    for (std::uint32_t rank = 16; rank < 32; ++rank) {
        slow.push_back({rank, {12.5e9, 50e9, study::kH100, study::kH100}});
    }
    const auto solved = solve(layout, study::with_ports(study::apart(layout, 8, study::kH100), slow));
    EXPECT_NEAR(solved.bound.value() * 1e3, 18.790, 0.0005);
    EXPECT_LE(solved.certificate, 1.05);
}

TEST(OptimalSpine, EntersEachPodOnce) {
    // 2:1 between pods of 32, 64 and 128 GPUs, that is of 1, 2 and 4 engines; all stages of 16 x 7.5 GB. A pod of one engine
    // takes all of it over 32 x 25 GB/s; larger ones do no worse than their nodes, which take a quarter over 400 GB/s.
    for (const auto& [gpus, milliseconds] : {std::pair{32U, 150.324}, std::pair{64U, 75.162}, std::pair{128U, 75.162}}) {
        const auto nodes = study::apart(kDeepSeekAll, 8, study::kH100);
        const auto fabric = study::under(nodes, study::two_to_one(nodes, gpus));
        const auto solved = solve(kDeepSeekAll, fabric);
        EXPECT_NEAR(solved.bound.value() * 1e3, milliseconds, 0.0005) << gpus;
        EXPECT_LE(solved.certificate, 1.001) << gpus;
        EXPECT_LE(uplink_seconds(solved.relays, fabric), 1.001 * solved.bound.value()) << gpus;
        auto as_chunked = solved.relays;
        as_chunked.chunks = 20;
        EXPECT_LE(paced_time(as_chunked, fabric) / solved.bound, 1.10 + 1e-9) << gpus;
        expect_delivery(solved.relays, solved.slices);
    }
}

TEST(OptimalSpine, OfOneStageIsBoundByItsSender) {
    const auto nodes = study::apart(kDeepSeekStage, 8, study::kH100);
    const auto fabric = study::under(nodes, study::two_to_one(nodes, 64));
    const auto solved = solve(kDeepSeekStage, fabric);
    EXPECT_NEAR(solved.bound.value() * 1e3, 9.395, 0.0005);
    EXPECT_LE(solved.certificate, 1.001);
    EXPECT_LE(uplink_seconds(solved.relays, fabric), solved.bound.value());
}

TEST(OptimalRails, JoinsOnlyNicsOfOneRail) {
    for (const auto& row : study::cases()) {
        if (!row.name.ends_with("Nodes")) {
            continue;
        }
        const auto fabric = study::under(row.fabric, Spine{{}, {}, {}, 8});
        const auto solved = solve(row.layout, fabric);
        EXPECT_LE(solved.certificate, 1.07) << row.name;
        for (std::size_t hop = 0; hop < solved.relays.size(); ++hop) {
            const auto from = solved.relays.source[hop];
            const auto to = solved.relays.destination[hop];
            EXPECT_TRUE(fabric.domain_of(from) == fabric.domain_of(to) || from % 8 == to % 8) << row.name;
        }
        expect_delivery(solved.relays, solved.slices);
    }
}

TEST(OptimalRandom, StaysNearTheBoundOnUnequalPorts) {
    std::vector<double> certificates;
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
        for (const auto& work : random_work::draw(seed)) {
            const auto relays = optimal_relays(work.slices, work.fabric);
            expect_delivery(relays, work.slices);
            certificates.push_back(busiest_port(port_seconds(relays, work.fabric)).time /
                                   lower_bound(work.slices, work.fabric).time);
        }
    }
    std::ranges::sort(certificates);
    ASSERT_GE(certificates.size(), 400U);
    EXPECT_GE(certificates.front(), 1.0 - 1e-9);
    EXPECT_LE(certificates[certificates.size() / 2], 1.02);
    EXPECT_LE(certificates[certificates.size() * 9 / 10], 1.05);
    EXPECT_LE(certificates.back(), 1.15);
}

TEST(OptimalRandom, TheSameWorkGivesTheSamePlan) {
    for (const auto& work : random_work::draw(7)) {
        EXPECT_EQ(optimal_relays(work.slices, work.fabric), optimal_relays(work.slices, work.fabric));
    }
}

}  // namespace
}  // namespace refit
