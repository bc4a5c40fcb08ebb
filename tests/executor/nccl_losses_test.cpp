// SPDX-License-Identifier: Apache-2.0
// The transport of NCCL without lost ranks: from the start, and within a run, a rank a thread.
#include <latch>

#include <gtest/gtest.h>

#include "nccl_ranks.hpp"
#include "posting_check.hpp"
#include "small_jobs.hpp"
#include "tight_settings.hpp"

namespace refit::exec {
namespace {

using namespace nccl_ranks;

/// How the ranks that a job goes on without end.
enum class End { kLeaves, kDies, kDiesAloud, kStalls };
struct Gone {};

/// All ranks begin `first`, in which those end that `rest` leaves out; the others go on with `rest`. By rank.
std::vector<Outcome> go_on(const Job& first, const Job& rest, End end, const nccl::Library& library) {
    testing_support::reset_nccl();
    static int jobs = 0;
    const auto meeting = std::filesystem::temp_directory_path() /
                         ("refit-less-" + std::to_string(::getpid()) + "-" + std::to_string(++jobs));
    const auto ranks = first.schedule->ranks();
    const auto& losses = rest.schedule->workload().losses();
    std::vector<Outcome> outcomes(ranks);
    std::latch are_struck{static_cast<std::ptrdiff_t>(losses.lost.size())};
    std::latch are_done{static_cast<std::ptrdiff_t>(rest.schedule->members().size())};
    const auto act = [&](std::uint32_t rank, Transport& transport) {
        Job own = first;
        for (const std::uint32_t lost : end == End::kLeaves ? std::vector<std::uint32_t>{} : losses.lost) {
            own.injections.push_back({InjectionKind::kDies, lost, first.schedule->waves() / 2});
        }
        if (end == End::kLeaves) {
            const auto prepared = transport.prepare(own);
            ASSERT_TRUE(prepared.has_value()) << prepared.error().front().message;
        } else {
            const auto failed = measure(transport, own, {0, 1});
            ASSERT_FALSE(failed.has_value());
            EXPECT_EQ(failed.error().front().rule, "rank-died") << failed.error().front().message;
            EXPECT_NE(failed.error().back().rule, "old-weights-lost");
            EXPECT_EQ(transport.failed_ranks(), losses.lost);
        }
        EXPECT_TRUE(transport.can_go_on());
        EXPECT_EQ(transport.own_rank(), rank);
        if (!losses.is_absent(rank)) {
            outcomes[rank].measured = measure(transport, rest, {1, 2});
            outcomes[rank].connecting = transport.connecting().value();
        }
    };
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
            const auto strike = [&](InjectionKind) {
                // Who heard of another's end before its own would be among those who are left.
                are_struck.arrive_and_wait();
                if (end == End::kStalls) {
                    are_done.wait();
                }
                testing_support::vanish(end == End::kDiesAloud);
                throw Gone{};
            };
            auto transport = nccl::make_transport_on(
                library,
                std::make_unique<AsyncDevice>(rank, rank % 2 == 0),
                [](bool) {},
                {rank, ranks, 0},
                {"file://" + meeting.string(), {}},
                strike);
            try {
                act(rank, *transport);
            } catch (const Gone&) {
                transport.reset();
            }
            if (!losses.is_absent(rank)) {
                are_done.count_down();
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(testing_support::nccl_faults(), std::vector<std::string>{});
    EXPECT_EQ(testing_support::nccl_counts().communicators, 0) << "left behind";
    return outcomes;
}

/// Trainers 0 to 7 by TP4 with two copies, generators 8 to 19 by TP4 with three, in domains of four. Without
/// 1, 4, 6 and 13 the trainers' domains have 0, 2, 3 and 5, 7 left, and the second engine's 12, 14 and 15 are
/// idle.
const study::Layout kTwoCopies{{64, 36}, 4, 2, 1, 1, 4, 3};
const Losses kLosses{{1, 4, 6, 13}, {12, 14, 15}};

struct Less {
    testing_support::SmallJob whole;
    testing_support::SmallJob less;
    program::Schedule whole_schedule;
    program::Schedule schedule;
    Job first;
    Job rest;
    explicit Less(Method method, const Losses& losses = kLosses)
        : whole{testing_support::job_of("", kTwoCopies, method, 4)},
          less{testing_support::job_of(std::string{name_of(method)}, kTwoCopies, method, 4, losses)},
          whole_schedule{whole.schedule(testing_support::tight_settings())},
          schedule{less.schedule(testing_support::tight_settings())} {
        first.schedule = &whole_schedule;
        rest.schedule = &schedule;
        for (Job* job : {&first, &rest}) {
            job->deadline = 20s;
            job->domain_starts = testing_support::starts_of(whole.cluster);
            job->shrinks = true;
        }
    }
    /// Of those who are left.
    [[nodiscard]] std::vector<Outcome> left(std::vector<Outcome> outcomes) const {
        std::vector<Outcome> some;
        for (const std::uint32_t rank : schedule.members()) {
            some.push_back(std::move(outcomes[rank]));
        }
        return some;
    }
};

// 20 ranks less 7. Process 1 is rank 2: it is number 1 of all, and number 1 of its domain.
TEST(NcclLosses, RunsWithAProcessForEachRankThatIsLeft) {
    for (const Method method : testing_support::kMethods) {
        const Less job{method};
        const auto outcomes = run_ranks(job.rest, {1, 2});
        EXPECT_EQ(outcomes.size(), 13U);
        expect_like_host(outcomes, job.rest, {1, 2}, job.less.name);
        EXPECT_EQ(testing_support::nccl_counts().shrinks, 0);
        EXPECT_EQ(outcomes[0].measured->ranks.size(), 13U);
        EXPECT_EQ(outcomes[0].measured->ranks[1].rank, 2U);
    }
}

TEST(NcclLosses, NamesAProcessThatLeavesOutOtherRanks) {
    const Less job{Method::kDirect};
    const auto other =
        testing_support::job_of("", kTwoCopies, Method::kDirect, 4, {{1, 4, 7, 13}, {12, 14, 15}});
    const auto schedule = other.schedule(testing_support::tight_settings());
    const auto outcomes =
        run_ranks(job.rest, {0, 1}, {false, program::kNone, 0us, [&](std::uint32_t rank, Job& own) {
                                         own.schedule = rank == 5 ? &schedule : own.schedule;
                                     }});
    for (const Outcome& outcome : outcomes) {
        ASSERT_FALSE(outcome.measured.has_value());
        // The sixth of those who are left: 0, 2, 3, 5 and 7, or 6 in its own eyes, come before it.
        EXPECT_EQ(outcome.measured.error().front().message.substr(0, 11), "rank 8 has ");
    }
}

// Whoever is left has the communicator of all by a shrink, and makes that of its domain, which always has two
// left. All 20 broadcast: that is shrunk, too; but those who gather were 0, 1, 2 and 3, and are 0, 2, 3
// and 5. Striped, the 12 generators hand on to those with their place in the other engines: 8 of them in
// groups that lost one.
TEST(NcclLosses, ShrinksTheCommunicatorsOfAllRanksWhenSomeLeave) {
    for (const Method method : testing_support::kMethods) {
        const Less job{method};
        const auto outcomes =
            job.left(go_on(job.first, job.rest, End::kLeaves, testing_support::fake_nccl()));
        expect_like_host(outcomes, job.rest, {1, 2}, job.less.name);
        const bool broadcasts = method == Method::kGatherBroadcast;
        EXPECT_EQ(testing_support::nccl_counts().shrinks,
                  broadcasts                   ? 26
                  : method == Method::kStriped ? 21
                                               : 13);
        for (std::size_t place = 0; place < outcomes.size(); ++place) {
            const Connecting& connecting = outcomes[place].connecting;
            EXPECT_EQ(connecting.note, "");
            EXPECT_EQ(connecting.shrunk, broadcasts || (method == Method::kStriped && place >= 5) ? 2U : 1U);
            EXPECT_EQ(connecting.made, broadcasts && place < 4 ? 2U : 1U);
            EXPECT_GT(connecting.seconds.value(), 0.0);
        }
    }
}

TEST(NcclLosses, GoesOnWithinTheRunWhereRanksDie) {
    for (const Method method : testing_support::kMethods) {
        const Less job{method};
        const auto begin = std::chrono::steady_clock::now();
        const auto outcomes = job.left(go_on(job.first, job.rest, End::kDies, testing_support::fake_nccl()));
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 15s) << "the deadline is 20 s";
        expect_like_host(outcomes, job.rest, {1, 2}, job.less.name);
        EXPECT_GE(testing_support::nccl_counts().shrinks, 13) << job.less.name;
        EXPECT_EQ(outcomes[0].connecting.note, "");
    }
}

TEST(NcclLosses, GoesOnWithinTheRunWhereRanksStall) {
    Less job{Method::kOptimal};
    job.first.deadline = 1s;
    const auto outcomes = job.left(go_on(job.first, job.rest, End::kStalls, testing_support::fake_nccl()));
    expect_like_host(outcomes, job.rest, {1, 2}, job.less.name);
    EXPECT_EQ(testing_support::nccl_counts().shrinks, 13);
}

// A communicator that NCCL has found broken is not shrunk; then all ranks make theirs anew.
TEST(NcclLosses, MakesCommunicatorsAnewWhereTheyCannotShrink) {
    for (const Method method : {Method::kGatherBroadcast, Method::kStriped}) {
        const Less job{method};
        const auto outcomes =
            job.left(go_on(job.first, job.rest, End::kDiesAloud, testing_support::fake_nccl()));
        expect_like_host(outcomes, job.rest, {1, 2}, job.less.name);
        for (const Outcome& outcome : outcomes) {
            EXPECT_NE(outcome.connecting.note.find("remote process exited"), std::string::npos)
                << outcome.connecting.note;
            EXPECT_EQ(outcome.connecting.shrunk, 0U);
            EXPECT_GE(outcome.connecting.made, method == Method::kGatherBroadcast ? 3U : 2U);
        }
    }
}

TEST(NcclLosses, SaysWhichVersionCanShrinkAndMakesCommunicatorsAnew) {
    const Less job{Method::kDirect};
    auto library = testing_support::fake_nccl();
    library.comm_revoke = nullptr;
    library.get_version = [](int* version) {
        *version = 22705;
        return ncclSuccess;
    };
    // By default a shrink takes no revoke.
    for (const auto& outcome : job.left(go_on(job.first, job.rest, End::kLeaves, library))) {
        EXPECT_EQ(outcome.connecting.note, "");
        EXPECT_EQ(outcome.connecting.shrunk, 1U);
    }
    // With several communicators, what one runs may wait for another's: they were given up, all at once.
    for (const auto& outcome : job.left(go_on(job.first, job.rest, End::kDies, library))) {
        ASSERT_TRUE(outcome.measured.has_value());
        EXPECT_EQ(outcome.connecting.note, "NCCL 2.27.5 has no ncclCommRevoke, which takes 2.28.7 or later");
        EXPECT_EQ(outcome.connecting.shrunk, 0U);
    }
    library.comm_shrink = nullptr;
    library.get_version = [](int* version) {
        *version = 21903;
        return ncclSuccess;
    };
    for (const auto& outcome : job.left(go_on(job.first, job.rest, End::kLeaves, library))) {
        ASSERT_TRUE(outcome.measured.has_value());
        EXPECT_EQ(outcome.connecting.note, "NCCL 2.19.3 has no ncclCommShrink, which takes 2.27.3 or later");
    }
}

// One communicator is enough for an abort by the shrink itself. Nobody is idle, who would give it up
// meanwhile.
TEST(NcclLosses, ShrinksOneCommunicatorWithoutRevoke) {
    Less job{Method::kDirect, {{1, 4, 6}, {}}};
    job.first.one_communicator = job.rest.one_communicator = true;
    auto library = testing_support::fake_nccl();
    library.comm_revoke = nullptr;
    const auto outcomes = job.left(go_on(job.first, job.rest, End::kDies, library));
    expect_like_host(outcomes, job.rest, {1, 2}, job.less.name);
    EXPECT_EQ(outcomes[0].connecting.note, "");
    EXPECT_EQ(outcomes[0].connecting.shrunk, 1U);
    EXPECT_EQ(testing_support::nccl_counts().shrinks, 17);
}

}  // namespace
}  // namespace refit::exec
