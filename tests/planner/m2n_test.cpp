// SPDX-License-Identifier: Apache-2.0
#include "refit/m2n.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "m2n_cases.hpp"

namespace refit {
namespace {

using m2n_cases::blocks;
using m2n_cases::call;
using Ranks = std::vector<std::uint32_t>;

M2nSettings domains_of(std::uint32_t size, M2nPath path = M2nPath::kSplit) {
    M2nSettings settings;
    settings.domain_size = size;
    settings.path = path;
    return settings;
}

Ranks indices(const std::vector<RankId>& ranks) {
    Ranks list;
    for (const auto rank : ranks) {
        list.push_back(rank.index());
    }
    return list;
}

/// Where a source rank sends, in its order.
Ranks targets(const M2nPlan& plan, std::uint32_t source) {
    Ranks list;
    for (const auto& injection : plan.injections) {
        if (injection.source.index() == source) {
            list.push_back(injection.destination.index());
        }
    }
    return list;
}

const M2nDestination& entry_of(const M2nPlan& plan, std::uint32_t rank) {
    return plan.destinations.at(rank - plan.destination.first_rank.index());
}
Ranks sources(const M2nPlan& plan, std::uint32_t rank) {
    return indices(plan.sources_of(entry_of(plan, rank)));
}
Ranks followers(const M2nPlan& plan, std::uint32_t rank) {
    return indices(plan.followers_of(entry_of(plan, rank)));
}

/// The ring from a rank on, the rank itself first.
Ranks ring(const M2nPlan& plan, std::uint32_t rank) {
    Ranks list{rank};
    while (entry_of(plan, list.back()).ring_next) {
        list.push_back(entry_of(plan, list.back()).ring_next->index());
    }
    return list;
}

/// first, first + step ... `count` of them.
Ranks steps(std::uint32_t first, std::uint32_t step, std::uint32_t count) {
    Ranks list;
    for (std::uint32_t i = 0; i < count; ++i) {
        list.push_back(first + i * step);
    }
    return list;
}

TEST(M2n, EqualShardsGoStraightAcross) {
    // 1024 x 1024 of 1 B over 4: 256 rows of 1024 B each, 262,144 B in one run.
    const auto plan =
        m2n_plan(call({1024, 1024}, 1, blocks(1, 4, 0, 0), blocks(1, 4, 0, 4)), domains_of(8)).value();
    ASSERT_EQ(plan.pairs.size(), 4U);
    for (std::uint32_t i = 0; i < 4; ++i) {
        EXPECT_EQ(targets(plan, i), Ranks{4 + i});
        EXPECT_EQ(plan.pairs[i], (M2nPair{i, i, 262'144, 262'144, 1}));
    }
}

TEST(M2n, CutsAlongDifferentAxesMeetEachOther) {
    // Rows to columns: each of 4 x 4 pairs has 256 rows of 256 B, 65,536 B.
    const auto plan =
        m2n_plan(call({1024, 1024}, 1, blocks(1, 4, 0, 0), blocks(1, 4, 1, 4)), domains_of(8)).value();
    ASSERT_EQ(plan.injections.size(), 16U);
    EXPECT_EQ(targets(plan, 2), (Ranks{4, 5, 6, 7}));
    for (const auto& pair : plan.pairs) {
        EXPECT_EQ(pair.bytes, 65'536U);
        EXPECT_EQ(pair.run_bytes, 256U);
        EXPECT_EQ(pair.runs, 256U);
    }
}

TEST(M2n, OneDomainLeavesAllButOneSourceReplicaIdle) {
    // 2 x 4 sources, 4 x 2 destinations, 1 MiB: a source shard has 256 KiB, and half of the destination
    // shards want it, each in 4 replicas. Node-aware: replica 0 sends all of it, 4 x 256 KiB = 1 MiB a rank.
    const auto one = call({1024, 1024}, 1, blocks(2, 4, 0, 0), blocks(4, 2, 0, 8));
    const auto plan = m2n_plan(one, domains_of(16, M2nPath::kLsa)).value();
    EXPECT_EQ(plan.path, M2nPath::kLsa);
    EXPECT_EQ(plan.balance, M2nBalance::kNodeAware);
    EXPECT_EQ(targets(plan, 0), (Ranks{8, 10, 12, 14}));
    EXPECT_EQ(targets(plan, 1), (Ranks{8, 10, 12, 14}));
    EXPECT_EQ(targets(plan, 2), (Ranks{9, 11, 13, 15}));
    EXPECT_EQ(targets(plan, 4), Ranks{});
    EXPECT_EQ(plan.totals.active_senders, 4U);
    EXPECT_EQ(plan.totals.max_rank_inject_tx, 1'048'576U);
    EXPECT_EQ(plan.totals.max_rank_network_tx, 0U);
}

TEST(M2n, UniformBalanceHalvesTheLoadOfOneDomain) {
    // The same with the two source replicas sharing: 2 x 256 KiB a rank.
    auto settings = domains_of(16, M2nPath::kLsa);
    settings.balance = M2nBalance::kUniform;
    const auto plan =
        m2n_plan(call({1024, 1024}, 1, blocks(2, 4, 0, 0), blocks(4, 2, 0, 8)), settings).value();
    EXPECT_EQ(targets(plan, 1), (Ranks{8, 10}));
    EXPECT_EQ(targets(plan, 3), (Ranks{9, 11}));
    EXPECT_EQ(targets(plan, 4), (Ranks{12, 14}));
    EXPECT_EQ(targets(plan, 7), (Ranks{13, 15}));
    EXPECT_EQ(plan.totals.max_rank_inject_tx, 524'288U);
}

TEST(M2n, ARackOfExpertsSendsTwiceAsMuchAsItWouldUniformly) {
    // gate_proj [256, 2048, 7168] of 1 B = 3,758,096,384 B. EP16 x 2 to TP8 x DP4, 64 ranks in one domain. A
    // source shard has 1/16 = 234,881,024 B, wanted by each of 4 replicas: 939,524,096 B from 16 ranks, or
    // half of it from 32.
    const auto one = call({256, 2048, 7168}, 1, blocks(2, 16, 0, 0), blocks(4, 8, 1, 32));
    auto settings = domains_of(64, M2nPath::kLsa);
    const auto usual = m2n_plan(one, settings).value();
    EXPECT_EQ(usual.totals.max_rank_inject_tx, 939'524'096U);
    EXPECT_EQ(usual.totals.active_senders, 16U);
    settings.balance = M2nBalance::kUniform;
    const auto uniform = m2n_plan(one, settings).value();
    EXPECT_EQ(uniform.totals.max_rank_inject_tx, 469'762'048U);
    EXPECT_EQ(uniform.totals.active_senders, 32U);
}

TEST(M2n, ReplicasOfADomainShareWhatEachReceived) {
    // 4 row shards of [8, 8] to 2 x 2 column shards, one domain: 4 sources dealt over 2 replicas.
    const auto plan =
        m2n_plan(call({8, 8}, 1, blocks(1, 4, 0, 0), blocks(2, 2, 1, 4)), domains_of(8)).value();
    EXPECT_EQ(targets(plan, 0), (Ranks{4, 5}));
    EXPECT_EQ(targets(plan, 1), (Ranks{4, 5}));
    EXPECT_EQ(targets(plan, 2), (Ranks{6, 7}));
    EXPECT_EQ(sources(plan, 4), (Ranks{0, 1}));
    EXPECT_EQ(followers(plan, 4), Ranks{6});
    EXPECT_EQ(sources(plan, 6), (Ranks{2, 3}));
    EXPECT_EQ(followers(plan, 6), Ranks{4});
    // The tensor crosses the network once and NVLink once.
    EXPECT_EQ(plan.totals.inject_bytes, 64U);
    EXPECT_EQ(plan.totals.fanout_bytes, 64U);
    EXPECT_EQ(plan.totals.ring_bytes, 0U);
}

TEST(M2n, NodesOfEightPassAReplicaOnSevenTimes) {
    // EP16 to TP8 x DP8: a pair is 16 experts x 256 rows x 7168 B = 29,360,128 B; rank 16 + j gets 16 of
    // them, 469,762,048 B, and 7 hops carry the whole 3,758,096,384 B.
    const auto plan =
        m2n_plan(call({256, 2048, 7168}, 1, blocks(1, 16, 0, 0), blocks(8, 8, 1, 16)), domains_of(8)).value();
    EXPECT_EQ(plan.path, M2nPath::kSplit);
    EXPECT_EQ(targets(plan, 3), steps(16, 1, 8));
    EXPECT_EQ(plan.pairs.front(), (M2nPair{0, 0, 29'360'128, 1'835'008, 16}));
    EXPECT_EQ(ring(plan, 16), steps(16, 8, 8));
    EXPECT_EQ(plan.totals.inject_bytes, 3'758'096'384ULL);
    EXPECT_EQ(plan.totals.ring_bytes, 7 * 3'758'096'384ULL);
    EXPECT_EQ(plan.totals.fanout_bytes, 0U);
    EXPECT_EQ(plan.totals.max_rank_inject_tx, 234'881'024U);
    EXPECT_EQ(plan.totals.max_rank_network_rx, 469'762'048U);
}

TEST(M2n, TwoSourceReplicasStartTwoInterleavedRings) {
    // K = 2: replicas 0 and 1 are injected, and each goes on two domains at a time, 3 hops.
    const auto one = call({256, 2048, 7168}, 1, blocks(2, 16, 0, 0), blocks(8, 8, 1, 32));
    const auto plan = m2n_plan(one, domains_of(8)).value();
    EXPECT_EQ(ring(plan, 32), (Ranks{32, 48, 64, 80}));
    EXPECT_EQ(ring(plan, 40), (Ranks{40, 56, 72, 88}));
    EXPECT_EQ(targets(plan, 16), steps(40, 1, 8));
    EXPECT_EQ(plan.totals.inject_bytes, 2 * 3'758'096'384ULL);
    EXPECT_EQ(plan.totals.ring_bytes, 6 * 3'758'096'384ULL);
    // On one communicator, node-aware: replicas 0 to 3 and 4 to 7; the same bytes.
    auto combined = domains_of(8, M2nPath::kCombined);
    combined.balance = M2nBalance::kNodeAware;
    const auto halves = m2n_plan(one, combined).value();
    EXPECT_EQ(ring(halves, 32), (Ranks{32, 40, 48, 56}));
    EXPECT_EQ(targets(halves, 16), steps(64, 1, 8));
    EXPECT_EQ(halves.totals.ring_bytes, plan.totals.ring_bytes);
}

TEST(M2n, ReplicasOfFourNodesPassOnFourNodesAhead) {
    // EP16 to TP32 x DP8 on 272 ranks: a pair is 16 x 64 rows x 7168 B = 7,340,032 B in 16 runs of 458,752 B;
    // a replica fills 4 domains, so the ring goes on 32 ranks at a time, 7 hops of 16 pairs = 117,440,512 B.
    const auto plan =
        m2n_plan(call({256, 2048, 7168}, 1, blocks(1, 16, 0, 0), blocks(8, 32, 1, 16)), domains_of(8))
            .value();
    EXPECT_EQ(plan.path, M2nPath::kSplit);
    EXPECT_EQ(targets(plan, 15), steps(16, 1, 32));
    EXPECT_EQ(plan.pairs.front(), (M2nPair{0, 0, 7'340'032, 458'752, 16}));
    EXPECT_EQ(ring(plan, 47), steps(47, 32, 8));
    EXPECT_EQ(plan.totals.max_rank_ring_tx, 117'440'512U);
}

TEST(M2n, LargeCommunicatorsInjectOneReplicaUnlessToldOtherwise) {
    // TP8 x DP8 to TP32 x DP8, 320 ranks: above 200 only source replica 0 sends, 8 of 64 ranks, and 7 hops
    // follow.
    const auto one = call({8192, 64}, 2, blocks(8, 8, 0, 0), blocks(8, 32, 0, 64));
    auto settings = domains_of(8);
    const auto usual = m2n_plan(one, settings).value();
    EXPECT_EQ(usual.totals.active_senders, 8U);
    EXPECT_EQ(ring(usual, 64).size(), 8U);
    // Off: K = 8 x 4 = 32 domains, all of them: every source sends one replica, and there is no ring.
    settings.single_injection = false;
    const auto every = m2n_plan(one, settings).value();
    EXPECT_EQ(every.totals.active_senders, 64U);
    EXPECT_EQ(every.totals.ring_bytes, 0U);
}

TEST(M2n, ARackDealsTheSourcesOverItsReplicas) {
    // EP16 to TP8 x DP8 in one domain of 64: 16 sources over 8 replicas, 2 each: 2 x 29,360,128 B into a GPU,
    // 7 x that stored by it.
    const auto plan =
        m2n_plan(call({256, 2048, 7168}, 1, blocks(1, 16, 0, 0), blocks(8, 8, 1, 16)), domains_of(64))
            .value();
    EXPECT_EQ(targets(plan, 0), steps(16, 1, 8));
    EXPECT_EQ(targets(plan, 1), steps(16, 1, 8));
    EXPECT_EQ(targets(plan, 2), steps(24, 1, 8));
    EXPECT_EQ(targets(plan, 15), steps(72, 1, 8));
    EXPECT_EQ(plan.totals.max_rank_network_rx, 58'720'256U);
    EXPECT_EQ(plan.totals.max_rank_fanout_tx, 411'041'792U);
    EXPECT_EQ(plan.totals.ring_bytes, 0U);
    EXPECT_EQ(plan.totals.fanout_bytes, 7 * 3'758'096'384ULL);
}

TEST(M2n, OneCommunicatorCountsDomainsFromRankZero) {
    // Domains of 64 from rank 0: ranks 16 to 63 and 64 to 79. 16 sources over 6 replicas: 3, 3, 3, 3, 2, 2.
    // The second domain has 2 replicas: slot 0 goes to 64 + j, slots 1 to 5, 13 sources, to 72 + j: 13 x
    // 29,360,128 B.
    const auto plan = m2n_plan(call({256, 2048, 7168}, 1, blocks(1, 16, 0, 0), blocks(8, 8, 1, 16)),
                               domains_of(64, M2nPath::kCombined))
                          .value();
    EXPECT_EQ(sources(plan, 16), (Ranks{0, 1, 2}));
    EXPECT_EQ(sources(plan, 48), (Ranks{12, 13}));
    EXPECT_EQ(sources(plan, 56), (Ranks{14, 15}));
    EXPECT_EQ(sources(plan, 64), (Ranks{0, 1, 2}));
    EXPECT_EQ(sources(plan, 72), steps(3, 1, 13));
    EXPECT_EQ(entry_of(plan, 24).ring_next, RankId{72});
    EXPECT_EQ(entry_of(plan, 56).ring_next, RankId{72});
    EXPECT_EQ(plan.totals.max_rank_network_rx, 381'681'664U);
    EXPECT_EQ(plan.totals.max_rank_inject_rx, 3 * 29'360'128U);
}

TEST(M2n, ASecondRackGetsItsCopyByRingOrFromASecondReplica) {
    // TP8 x DP16 over two domains of 64. One source replica: each of the 64 leaders passes its 2 pairs on.
    const auto one =
        m2n_plan(call({256, 2048, 7168}, 1, blocks(1, 16, 0, 0), blocks(16, 8, 1, 16)), domains_of(64))
            .value();
    EXPECT_EQ(one.totals.ring_bytes, 3'758'096'384ULL);
    EXPECT_EQ(one.totals.max_rank_ring_tx, 58'720'256U);
    // Two source replicas: one for each domain.
    const auto two =
        m2n_plan(call({256, 2048, 7168}, 1, blocks(2, 16, 0, 0), blocks(16, 8, 1, 32)), domains_of(64))
            .value();
    EXPECT_EQ(two.totals.ring_bytes, 0U);
    EXPECT_EQ(two.totals.inject_bytes, 2 * 3'758'096'384ULL);
}

TEST(M2n, DenseStagesUseTheirReplicasForOneNodeEach) {
    // TP4 x DP2 to TP4 x DP8, q_proj [8192, 5120] of 2 B: a quarter is 20,971,520 B; nodes of 8 hold two
    // replicas.
    const auto plan =
        m2n_plan(call({8192, 5120}, 2, blocks(2, 4, 0, 0), blocks(8, 4, 0, 8)), domains_of(8)).value();
    EXPECT_EQ(targets(plan, 1), Ranks{9});
    EXPECT_EQ(targets(plan, 6), Ranks{18});
    EXPECT_EQ(plan.pairs.front().bytes, 20'971'520U);
    EXPECT_EQ(ring(plan, 8), (Ranks{8, 24}));
    EXPECT_EQ(ring(plan, 16), (Ranks{16, 32}));
    EXPECT_EQ(followers(plan, 8), Ranks{12});
    EXPECT_EQ(sources(plan, 12), Ranks{});
    EXPECT_FALSE(entry_of(plan, 12).is_direct);
}

TEST(M2n, FewSourceShardsLeaveAllStoresToFewLeaders) {
    // TP2 x DP2 to TP1 x DP16 in one domain: ranks 4 and 5 receive half of 83,886,080 B each, and store it 15
    // times.
    const auto plan =
        m2n_plan(call({8192, 5120}, 2, blocks(2, 2, 0, 0), blocks(16, 1, 0, 4)), domains_of(64)).value();
    EXPECT_EQ(plan.totals.active_senders, 2U);
    EXPECT_EQ(targets(plan, 0), Ranks{4});
    EXPECT_EQ(targets(plan, 1), Ranks{5});
    EXPECT_EQ(plan.totals.max_rank_fanout_tx, 15 * 41'943'040U);
    EXPECT_EQ(plan.totals.busiest, RankId{4});
    EXPECT_EQ(
        std::ranges::count_if(plan.destinations, [&](const auto& entry) { return entry.sources.size() > 0; }),
        2);
}

TEST(M2n, BroadcastsAreSharedAmongAllSources) {
    // A norm on 8 to 32 ranks, whole on each: source i serves 8 + 4i, which stores to the 3 others.
    const auto plan =
        m2n_plan(call({5120}, 2, blocks(8, 1, 0, 0), blocks(32, 1, 0, 8)), domains_of(8)).value();
    EXPECT_EQ(plan.balance, M2nBalance::kUniform);
    for (std::uint32_t i = 0; i < 8; ++i) {
        EXPECT_EQ(targets(plan, i), Ranks{8 + 4 * i});
        EXPECT_EQ(followers(plan, 8 + 4 * i), steps(9 + 4 * i, 1, 3));
    }
    EXPECT_EQ(plan.totals.ring_bytes, 0U);
    // Above 200 ranks they are not: one source for each domain of 8, here 25 of them.
    const auto large =
        m2n_plan(call({5120}, 2, blocks(8, 1, 0, 0), blocks(200, 1, 0, 8)), domains_of(8)).value();
    EXPECT_EQ(large.balance, M2nBalance::kNodeAware);
    EXPECT_GT(large.totals.ring_bytes, 0U);
}

TEST(M2n, ThirtyTwoExpertSourcesPassOnlyWithinOneDomain) {
    const auto one = call({256, 64, 64}, 1, blocks(1, 32, 0, 0), blocks(1, 8, 1, 32));
    const auto apart = m2n_plan(one, domains_of(8));
    ASSERT_FALSE(apart);
    EXPECT_EQ(apart.error().front().rule, "MAX_SOURCES");
    EXPECT_EQ(apart.error().front().code, ErrorCode::kInfeasible);
    const auto together = m2n_plan(one, domains_of(40, M2nPath::kLsa)).value();
    EXPECT_EQ(together.path, M2nPath::kLsa);
    EXPECT_EQ(sources(together, 32).size(), 32U);
}

TEST(M2n, TheLsaPathIsClosedAboveSixtyFourRanks) {
    // 8 + 56 ranks are 64, 8 + 57 are not.
    const auto plan_for = [](std::uint32_t ranks) {
        return m2n_plan(call({8}, 1, blocks(1, 8, 0, 0), blocks(ranks, 1, 0, 8)),
                        domains_of(128, M2nPath::kLsa))
            .value();
    };
    EXPECT_EQ(plan_for(56).path, M2nPath::kLsa);
    EXPECT_EQ(plan_for(57).path, M2nPath::kSplit);
}

TEST(M2n, TheLsaPathIsClosedAboveThirtyTwoSourceShards) {
    const auto settings = domains_of(64, M2nPath::kLsa);
    EXPECT_EQ(m2n_plan(call({1056}, 1, blocks(1, 32, 0, 0), blocks(1, 4, 0, 32)), settings).value().path,
              M2nPath::kLsa);
    EXPECT_EQ(m2n_plan(call({1056}, 1, blocks(1, 33, 0, 0), blocks(1, 3, 0, 33)), settings).value().path,
              M2nPath::kSplit);
}

TEST(M2n, OfMoreSourceReplicasTheFirstOfEachShareSends) {
    // 5 replicas for 2: shares of 3 and 2, so replicas 0 and 3.
    auto settings = domains_of(8, M2nPath::kCombined);
    const auto plan = m2n_plan(call({4}, 1, blocks(5, 2, 0, 0), blocks(2, 2, 0, 10)), settings).value();
    EXPECT_EQ(plan.balance, M2nBalance::kUniform);
    EXPECT_EQ(targets(plan, 0), Ranks{10});
    EXPECT_EQ(targets(plan, 6), Ranks{12});
    EXPECT_EQ(plan.totals.active_senders, 4U);
}

TEST(M2n, ACommunicatorIsLargeAboveTwoHundredRanks) {
    auto one = call({4}, 1, blocks(1, 2, 0, 0), blocks(2, 2, 0, 2));
    const auto balance_with = [&](std::uint64_t ranks) {
        one.communicator_ranks = ranks;
        return m2n_plan(one, domains_of(8, M2nPath::kCombined)).value().balance;
    };
    EXPECT_EQ(balance_with(200), M2nBalance::kUniform);
    EXPECT_EQ(balance_with(201), M2nBalance::kNodeAware);
}

TEST(M2n, LargeCommunicatorsInjectAtMostFourReplicasThatFitADomain) {
    // 8 replicas of 2 in 8 domains of 2, 8 source replicas: 4 are injected, and each goes on 4 domains ahead.
    auto settings = domains_of(2);
    settings.large_communicator = 16;
    const auto plan = m2n_plan(call({4}, 1, blocks(8, 2, 0, 0), blocks(8, 2, 0, 16)), settings).value();
    EXPECT_EQ(plan.totals.active_senders, 8U);
    EXPECT_EQ(ring(plan, 16), (Ranks{16, 24}));
    EXPECT_EQ(ring(plan, 22), (Ranks{22, 30}));
}

TEST(M2n, OneShardOnTheOuterAxisCountsAsBlocks) {
    // 8 whole replicas as {shard, replicate} of {1, 8} in 4 domains of 2, two source replicas: K = 2, not 4.
    const auto one = call({4, 4}, 1, blocks(2, 2, 0, 0), m2n_cases::strided(1, 8, 1, 4));
    const auto plan = m2n_plan(one, domains_of(2)).value();
    EXPECT_EQ(ring(plan, 4), (Ranks{4, 8}));
    EXPECT_EQ(ring(plan, 6), (Ranks{6, 10}));
}

TEST(M2n, ALeaderOfNothingStillNamesTheNextOne) {
    // 5 replicas from rank 1 in domains of 2: {1}, {2, 3}, {4, 5}. One slot; rank 3 holds none, and its next
    // is 4.
    const auto one = call({4, 4}, 1, blocks(1, 1, 0, 0), blocks(5, 1, 0, 1));
    const auto plan = m2n_plan(one, domains_of(2, M2nPath::kCombined)).value();
    EXPECT_EQ(ring(plan, 1), (Ranks{1, 2, 4}));
    EXPECT_EQ(sources(plan, 3), Ranks{});
    EXPECT_EQ(ring(plan, 3), (Ranks{3, 4}));
    EXPECT_EQ(followers(plan, 2), Ranks{3});
}

TEST(M2n, UnevenDomainsFallBackToOneCommunicatorKeepingTheBalance) {
    // 2 replicas of 12 in domains of 8: 3 domains do not divide by 2.
    const auto plan =
        m2n_plan(call({4608, 512}, 2, blocks(1, 8, 0, 0), blocks(2, 12, 0, 8)), domains_of(8)).value();
    EXPECT_EQ(plan.path, M2nPath::kCombined);
    EXPECT_EQ(plan.balance, M2nBalance::kNodeAware);
}

TEST(M2n, ReversedMeshesArePlannedFromTheDestinationsFirstRank) {
    const auto plan = m2n_plan(call({64}, 1, blocks(1, 4, 0, 12), blocks(3, 4, 0, 0)), domains_of(4)).value();
    EXPECT_EQ(plan.path, M2nPath::kSplit);
    EXPECT_EQ(targets(plan, 13), Ranks{1});
    EXPECT_EQ(ring(plan, 1), (Ranks{1, 5, 9}));
}

TEST(M2n, AnAxisCutIntoOnePartStillEndsARun) {
    // [4, 8] whole on both sides, though axis 1 is "cut" at the destination: 4 runs of 8 B where one of 32
    // would do.
    const auto plan =
        m2n_plan(call({4, 8}, 1, blocks(1, 1, 0, 0), blocks(1, 1, 1, 1)), domains_of(8)).value();
    EXPECT_EQ(plan.pairs.front(), (M2nPair{0, 0, 32, 8, 4}));
}

TEST(M2n, FaultsOfTheCallComeBackAllAtOnceWithTheirPlaces) {
    auto bad = call({8, 8}, 2, blocks(1, 4, 0, 0), blocks(1, 4, 1, 2));
    bad.destination.element_bytes = 4;
    const auto plan = m2n_plan(bad, domains_of(0));
    ASSERT_FALSE(plan);
    std::map<std::string, std::string> places;
    for (const auto& fault : plan.error()) {
        places[fault.rule] = fault.where;
        EXPECT_EQ(fault.code, ErrorCode::kInvalidInput);
    }
    EXPECT_EQ(places,
              (std::map<std::string, std::string>{{"dtypes-differ", "/destination/element_bytes"},
                                                  {"empty-domain", "/domain_size"},
                                                  {"ranks-overlap", "/destination/start_rank"}}));
}

}  // namespace
}  // namespace refit
