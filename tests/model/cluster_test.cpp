// SPDX-License-Identifier: Apache-2.0
#include "refit/cluster.hpp"

#include <map>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include "systems.hpp"

namespace refit {
namespace {

using testing_systems::system_of;

TEST(UsualGpusPerDomain, IsTheLargestMultipleOf16ThatFits) {
    EXPECT_EQ(usual_gpus_per_domain(system_of("nvl72", 72)), 64U);
    EXPECT_EQ(usual_gpus_per_domain(system_of("nvl16", 16)), 16U);
    EXPECT_EQ(usual_gpus_per_domain(system_of("nvl31", 31)), 16U);
}

TEST(UsualGpusPerDomain, IsAllOfADomainBelow16) {
    EXPECT_EQ(usual_gpus_per_domain(system_of("nvl8", 8)), 8U);
    EXPECT_EQ(usual_gpus_per_domain(system_of("nvl15", 15)), 15U);
    EXPECT_EQ(usual_gpus_per_domain(system_of("single", 1)), 1U);
}

TEST(Cluster, NumbersTrainersBeforeGenerators) {
    const auto system = system_of("nvl8", 8);
    const Cluster cluster{system, system, 12, 4, {8, 8, true}};
    EXPECT_EQ(cluster.gpus(), 16U);
    EXPECT_EQ(cluster.trainer(11), RankId{11});
    EXPECT_EQ(cluster.generator(0), RankId{12});
    EXPECT_TRUE(cluster.is_trainer(RankId{11}));
    EXPECT_FALSE(cluster.is_trainer(RankId{12}));
}

TEST(Cluster, BeginsGeneratorsOnANewDomain) {
    // 12 trainers fill domain 0 and half of domain 1; the generators have 2 and 3, though 1 has room.
    const auto system = system_of("nvl8", 8);
    const Cluster cluster{system, system, 12, 12, {8, 8, true}};
    EXPECT_EQ(cluster.domain_of(cluster.trainer(7)), DomainId{0});
    EXPECT_EQ(cluster.domain_of(cluster.trainer(8)), DomainId{1});
    EXPECT_EQ(cluster.domain_of(cluster.generator(0)), DomainId{2});
    EXPECT_EQ(cluster.domain_of(cluster.generator(7)), DomainId{2});
    EXPECT_EQ(cluster.domain_of(cluster.generator(8)), DomainId{3});
    EXPECT_EQ(cluster.domains(), 4U);
}

TEST(Cluster, LeavesNoDomainEmptyWhereTrainersFillTheirs) {
    const auto system = system_of("nvl8", 8);
    const Cluster cluster{system, system, 16, 8, {8, 8, true}};
    EXPECT_EQ(cluster.domain_of(cluster.trainer(15)), DomainId{1});
    EXPECT_EQ(cluster.domain_of(cluster.generator(0)), DomainId{2});
    EXPECT_EQ(cluster.domains(), 3U);
}

TEST(Cluster, MixesDomainsWhereGenerationDoesNotBeginANewOne) {
    const auto system = system_of("nvl8", 8);
    const Cluster cluster{system, system, 12, 12, {8, 8, false}};
    EXPECT_EQ(cluster.domain_of(cluster.generator(0)), cluster.domain_of(cluster.trainer(11)));
    EXPECT_EQ(cluster.domain_of(cluster.generator(3)), DomainId{1});
    EXPECT_EQ(cluster.domain_of(cluster.generator(4)), DomainId{2});
    EXPECT_EQ(cluster.domains(), 3U);
}

TEST(Cluster, Uses64Of72GpusOfADomain) {
    // 128 trainers on two domains of 64 used, 256 generators on four more; with all 72 they take 2 and 4 as
    // well, but the 73rd trainer begins the second domain.
    const auto system = system_of("nvl72", 72);
    const Cluster cluster{
        system, system, 128, 256, {usual_gpus_per_domain(system), usual_gpus_per_domain(system), true}};
    EXPECT_EQ(cluster.domain_of(RankId{63}), DomainId{0});
    EXPECT_EQ(cluster.domain_of(RankId{64}), DomainId{1});
    EXPECT_EQ(cluster.domains(), 6U);
    const Cluster full{system, system, 128, 256, {72, 72, true}};
    EXPECT_EQ(full.domain_of(RankId{71}), DomainId{0});
    EXPECT_EQ(full.domain_of(RankId{72}), DomainId{1});
    EXPECT_EQ(full.domains(), 6U);
}

TEST(Cluster, NeverMixesSystemsInADomain) {
    for (const bool starts_new : {true, false}) {
        const Cluster cluster{system_of("a", 8), system_of("b", 72), 12, 12, {8, 8, starts_new}};
        EXPECT_EQ(cluster.domain_of(cluster.generator(0)), DomainId{2});
        EXPECT_EQ(cluster.system_of(cluster.trainer(11)).name, "a");
        EXPECT_EQ(cluster.system_of(cluster.generator(0)).name, "b");
    }
}

TEST(Cluster, NeverPutsMoreRanksInADomainThanAreUsed) {
    const auto system = system_of("nvl8", 8);
    for (const bool starts_new : {true, false}) {
        for (std::uint32_t train = 1; train <= 20; ++train) {
            for (const std::uint32_t used : {3U, 8U}) {
                const Cluster cluster{system, system, train, 13, {used, used, starts_new}};
                std::map<std::uint32_t, std::uint32_t> ranks;
                for (std::uint32_t rank = 0; rank < cluster.gpus(); ++rank) {
                    ++ranks[cluster.domain_of(RankId{rank}).index()];
                }
                EXPECT_EQ(ranks.size(), cluster.domains());
                for (const auto& [domain, count] : ranks) {
                    EXPECT_LT(domain, cluster.domains());
                    EXPECT_LE(count, used);
                }
            }
        }
    }
}

TEST(Cluster, RefusesCountsOfZero) {
    const auto system = system_of("nvl8", 8);
    EXPECT_THROW((Cluster{system, system, 0, 8, {8, 8, true}}), std::logic_error);
    EXPECT_THROW((Cluster{system, system, 8, 0, {8, 8, true}}), std::logic_error);
    EXPECT_THROW((Cluster{system, system, 8, 8, {0, 8, true}}), std::logic_error);
    EXPECT_THROW((Cluster{system, system, 8, 8, {8, 0, false}}), std::logic_error);
}

TEST(Cluster, PutsDomainsIntoPodsInOrder) {
    // Domains 0 and 1 train, 2 and 3 generate; pods of three.
    const auto system = system_of("nvl8", 8);
    FabricSettings fabric;
    fabric.domains_per_pod = 3;
    EXPECT_TRUE(fabric.is_plain());  // 1:1 limits nothing
    fabric.oversubscription = 2.0;
    EXPECT_FALSE(fabric.is_plain());
    const Cluster cluster{system, system, 16, 16, {8, 8, true}, fabric};
    EXPECT_EQ(cluster.pod_of(DomainId{2}), 0U);
    EXPECT_EQ(cluster.pod_of(DomainId{3}), 1U);
    EXPECT_EQ(cluster.pods(), 2U);
    EXPECT_EQ((Cluster{system, system, 16, 16, {8, 8, true}}).pods(), 1U);
}

TEST(Cluster, CountsRailsWithinNodes) {
    // A rack of 12 in trays of 4; the second domain begins with a tray again.
    auto system = system_of("rack", 12);
    system.gpus_per_node = 4;
    const Cluster cluster{system, system, 12, 12, {10, 10, true}};
    EXPECT_EQ(cluster.rail_of(RankId{6}), 2U);
    EXPECT_EQ(cluster.rail_of(RankId{10}), 0U);  // the first of domain 1
    EXPECT_EQ(cluster.rail_of(RankId{13}), 1U);
}

TEST(Cluster, KnowsWhichPartOfItsRateANicReaches) {
    // NICs of 50 GB/s.
    const auto system = system_of("nvl8", 8);
    FabricSettings fabric;
    fabric.nics.emplace(3, std::nullopt);
    fabric.nics.emplace(9, Bandwidth::gigabytes_per_second(20.0));
    fabric.nics.emplace(10, Bandwidth::gigabytes_per_second(50.0));
    const Cluster cluster{system, system, 8, 8, {8, 8, true}, fabric};
    EXPECT_EQ(cluster.nic_share(RankId{2}), 1.0);
    EXPECT_EQ(cluster.nic_share(RankId{3}), 0.0);
    EXPECT_DOUBLE_EQ(cluster.nic_share(RankId{9}), 0.4);
    EXPECT_EQ(cluster.nic_share(RankId{10}), 1.0);
    fabric.nics.emplace(16, std::nullopt);
    EXPECT_THROW((Cluster{system, system, 8, 8, {8, 8, true}, fabric}), std::logic_error);
}

}  // namespace
}  // namespace refit
