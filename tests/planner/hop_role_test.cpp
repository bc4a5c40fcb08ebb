// SPDX-License-Identifier: Apache-2.0
#include "refit/hop_role.hpp"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "study.hpp"

namespace refit {
namespace {

/// 8 x 16 elements on trainers 0 to 3, in node 0: rows 0 to 3 on 0 and 2, the others on 1 and 3. Generators 4 and 6 want
/// the first rows, 5 and 7 the others; with two GPUs a node, 4 and 5 share one, 6 and 7 another.
struct Job {
    Workload workload = study::workload_of({{8, 16}, 2, 2, 1, 1, 2, 2});
    Cluster cluster;

    explicit Job(std::uint32_t generators_per_domain) : cluster{make(generators_per_domain)} {}
    static Cluster make(std::uint32_t per_domain) {
        const auto shipped = shipped_scenario("reshard-two-domains");
        return {shipped.cluster.train_system(), shipped.cluster.generate_system(), 4, 4, Placement{4, per_domain, true}};
    }
};

/// One message of the first rows with these hops: source, destination, followed hop.
RelayTable table(std::vector<std::array<std::uint32_t, 3>> hops) {
    RelayTable relays;
    const std::vector<std::uint64_t> shape{8, 16};
    relays.parts.push_back({0, 0, 0, 1, Box::whole(shape).with(0, {0, 4})});
    relays.messages.push_back({0, 1, 128});
    for (const auto& [source, destination, follows] : hops) {
        relays.message.push_back(0);
        relays.source.push_back(source);
        relays.destination.push_back(destination);
        relays.follows.push_back(follows);
    }
    return relays;
}

constexpr auto kNone = RelayTable::kNone;

std::vector<HopRole> roles(const RelayTable& relays, const Job& job) {
    const auto ends = message_ends(relays, job.workload, 4);
    std::vector<HopRole> all;
    for (std::size_t hop = 0; hop < relays.size(); ++hop) {
        all.push_back(role_of(relays, hop, ends, job.cluster));
    }
    return all;
}

TEST(HopRole, KnowsHoldersAndReceivers) {
    const Job job{2};
    const auto ends = message_ends(table({}), job.workload, 4);
    EXPECT_EQ(ends.holders, (std::vector<std::vector<std::uint32_t>>{{0, 2}}));
    EXPECT_EQ(ends.receivers, (std::vector<std::vector<std::uint32_t>>{{4, 6}}));
}

TEST(HopRole, TellsHoldersRelaysAndNeighboursApart) {
    EXPECT_EQ(roles(table({{0, 4, kNone}, {4, 6, 0}}), Job{2}), (std::vector{HopRole::kChosenHolder, HopRole::kRelay}));
    EXPECT_EQ(roles(table({{0, 4, kNone}, {4, 6, 0}}), Job{4}), (std::vector{HopRole::kChosenHolder, HopRole::kFanOut}));
}

TEST(HopRole, TellsLentNics) {
    // Out by trainer 1; then in by generator 7, which wants other rows.
    EXPECT_EQ(roles(table({{0, 1, kNone}, {1, 4, 0}}), Job{2}), (std::vector{HopRole::kLentExit, HopRole::kLentExit}));
    EXPECT_EQ(roles(table({{0, 7, kNone}, {7, 6, 0}}), Job{2}), (std::vector{HopRole::kLentEntry, HopRole::kLentEntry}));
}

TEST(HopRole, OfTheOnlyHolderSaysSo) {
    Job job{2};
    job.workload = study::workload_of({{8, 16}, 2, 1, 2, 1, 2, 2});
    const auto relays = table({{0, 4, kNone}});
    EXPECT_EQ(role_of(relays, 0, message_ends(relays, job.workload, 4), job.cluster), HopRole::kOnlyHolder);
    EXPECT_EQ(describe(HopRole::kOnlyHolder), "the only holder");
}

}  // namespace
}  // namespace refit
