// SPDX-License-Identifier: Apache-2.0
// The transport of NCCL, a rank a thread, over a NCCL and devices of host memory: all of it but the calls
// themselves.
#include <gtest/gtest.h>

#include "nccl_ranks.hpp"
#include "posting_check.hpp"
#include "small_jobs.hpp"
#include "tight_settings.hpp"

namespace refit::exec {
namespace {

using namespace nccl_ranks;

/// Small plans by four methods on 12 to 16 ranks, in domains of four: every `step`-th.
std::vector<testing_support::SmallJob> plans(std::size_t step) {
    std::vector<testing_support::SmallJob> jobs;
    std::size_t turn = 0;
    for (const auto& [name, layout] : testing_support::layouts_of_16()) {
        for (const Method method : testing_support::kMethods) {
            if (turn++ % step == 0) {
                jobs.push_back(testing_support::job_of(name, layout, method, 4));
            }
        }
    }
    return jobs;
}

TEST(Nccl, VerifiesEveryPlanWhateverTheOrderOfStreamsAndLeavesTheRecordsThatTheHostDoes) {
    std::size_t turn = 0;
    for (const auto& small : plans(1)) {
        const auto schedule = small.schedule(turn % 2 == 0 ? program::Settings{} : testing_support::tight_settings());
        Job job;
        job.schedule = &schedule;
        job.deadline = 20s;
        job.domain_starts = testing_support::starts_of(small.cluster);
        job.one_communicator = turn % 3 == 0;
        // On devices that run one kernel of NCCL at a time, too: no rank waits for one that another has not
        // begun.
        const auto outcomes = run_ranks(job, {0, 2}, {turn++ % 2 == 0, program::kNone, 0us, {}});
        expect_like_host(outcomes, job, {0, 2}, small.name);
        EXPECT_EQ(testing_support::nccl_counts().splits,
                  job.one_communicator ? 0 : static_cast<int>(schedule.ranks()));
        EXPECT_EQ(outcomes.front().machine.find("a communicator for each domain") == std::string::npos,
                  job.one_communicator);
    }
}

TEST(Nccl, ReplaysGraphsOnAllRanksOrOnNone) {
    for (const auto& small : plans(5)) {
        const auto schedule = small.schedule(testing_support::tight_settings());
        Job job;
        job.schedule = &schedule;
        job.deadline = 20s;
        job.graphs = true;
        job.domain_starts = testing_support::starts_of(small.cluster);
        for (const std::uint32_t unable : {program::kNone, 5U}) {
            const auto outcomes = run_ranks(job, {1, 2}, {false, unable, 0us, {}});
            expect_like_host(outcomes, job, {1, 2}, small.name);
            for (const Outcome& outcome : outcomes) {
                EXPECT_TRUE(unable == program::kNone || outcome.replays == 0) << small.name;
            }
            EXPECT_EQ(outcomes[0].replays > 0, unable == program::kNone) << small.name;
            EXPECT_EQ(outcomes[0].machine.find("CUDA graphs") != std::string::npos, unable == program::kNone);
        }
    }
}

/// EP8 to TP2 x DP4 in domains of 8.
struct Sixteen {
    testing_support::SmallJob small;
    program::Schedule schedule;
    Job job;
    explicit Sixteen(Method method)
        : small{testing_support::job_of("", testing_support::layouts_of_16()[1].second, method, 8)},
          schedule{small.schedule()} {
        job.schedule = &schedule;
        job.deadline = 20s;
        job.domain_starts = testing_support::starts_of(small.cluster);
    }
};

// Replicas of generators are of one domain: what they pass on goes over its communicator.
TEST(Nccl, MovesWhatStaysInADomainOverItsCommunicator) {
    Sixteen job{Method::kOptimal};
    (void)run_ranks(job.job, {0, 1});
    const int inside = testing_support::nccl_counts().domain_kernels;
    EXPECT_GT(testing_support::nccl_counts().kernels, inside);
    EXPECT_GE(inside, 8);
    job.job.one_communicator = true;
    (void)run_ranks(job.job, {0, 1});
    EXPECT_EQ(testing_support::nccl_counts().domain_kernels, 0);
}

TEST(Nccl, NamesTheElementThatWasSpoiledAndWhoGaveItAndKeepsTheSource) {
    Sixteen job{Method::kDirect};
    job.job.injections = {{InjectionKind::kCorrupts, 2, 0}};
    job.job.graphs = true;
    for (const Outcome& outcome : run_ranks(job.job, {1, 2})) {
        ASSERT_FALSE(outcome.measured.has_value());
        const Fault& fault = outcome.measured.error().front();
        EXPECT_EQ(fault.rule, "not-verified");
        EXPECT_NE(fault.message.find("from rank 2"), std::string::npos) << fault.message;
        EXPECT_EQ(outcome.measured.error().size(), 1U) << "the old weights are lost";
        EXPECT_EQ(outcome.replays, 0U);
    }
}

// All that rank 3 begins takes it 3 ms: packing, the wire and unpacking of a group 9 ms, and ten times as
// long 90 ms.
TEST(Nccl, TakesTenTimesAsLongOnASlowRankAndVerifies) {
    Sixteen job{Method::kDirect};
    job.job.injections = {{InjectionKind::kSlows, 3, 0}};
    const auto slow = run_ranks(job.job, {0, 1}, {false, program::kNone, 3ms, {}});
    expect_like_host(slow, job.job, {0, 1}, "slow");
    EXPECT_GE(slow[0].measured->ranks[3].seconds.value(), 0.09);
}

// A group takes it 180 ms, so ten times as long is past the deadline.
TEST(Nccl, NamesASlowRankAtTheDeadline) {
    Sixteen job{Method::kDirect};
    job.job.deadline = 1500ms;
    job.job.injections = {{InjectionKind::kSlows, 3, 0}};
    const auto outcomes = run_ranks(job.job, {0, 1}, {false, program::kNone, 60ms, {}});
    for (const Outcome& outcome : outcomes) {
        ASSERT_FALSE(outcome.measured.has_value());
        EXPECT_EQ(outcome.measured.error().size(), 1U) << "the old weights are lost";
    }
    EXPECT_EQ(outcomes[3].measured.error().front().rule, "deadline");
    EXPECT_NE(outcomes[3].measured.error().front().message.find("rank 3 was not done with wave 1 of "),
              std::string::npos)
        << outcomes[3].measured.error().front().message;
}

// A rank whose NCCL says nothing any more ends all at the deadline.
TEST(Nccl, EndsAtTheDeadlineWhereNcclSaysNothing) {
    Sixteen job{Method::kDirect};
    job.job.deadline = 1500ms;
    const auto begin = std::chrono::steady_clock::now();
    const auto outcomes =
        run_ranks(job.job, {0, 1}, {false, program::kNone, 0us, [](std::uint32_t rank, Job&) {
                                        if (rank == 0) {
                                            testing_support::fail_groups_after(5, true);
                                        }
                                    }});
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
    bool is_named = false;
    for (const Outcome& outcome : outcomes) {
        ASSERT_FALSE(outcome.measured.has_value());
        is_named = is_named || outcome.measured.error().front().message.find(" at the deadline; messages ") !=
                                   std::string::npos;
    }
    EXPECT_TRUE(is_named);
}

// A rank that NCCL tells of a fault aborts; its peers hear of it, and all end long before the deadline.
TEST(Nccl, EndsOnAllRanksWhereOneFailsInTheMidst) {
    Sixteen job{Method::kDirect};
    const auto begin = std::chrono::steady_clock::now();
    const auto outcomes =
        run_ranks(job.job, {0, 1}, {false, program::kNone, 0us, [](std::uint32_t rank, Job&) {
                                        if (rank == 0) {
                                            testing_support::fail_groups_after(11);
                                        }
                                    }});
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 15s);
    for (const Outcome& outcome : outcomes) {
        ASSERT_FALSE(outcome.measured.has_value());
        EXPECT_EQ(outcome.measured.error().size(), 1U) << "the old weights are lost";
    }
}

TEST(Nccl, RefusesRanksThatSplitUnlikeTheOthers) {
    Sixteen job{Method::kDirect};
    const auto outcomes =
        run_ranks(job.job, {0, 1}, {false, program::kNone, 0us, [](std::uint32_t rank, Job& own) {
                                        own.one_communicator = rank == 6;
                                    }});
    for (const Outcome& outcome : outcomes) {
        ASSERT_FALSE(outcome.measured.has_value());
        EXPECT_EQ(outcome.measured.error().front().rule, "other-plan");
    }
}

}  // namespace
}  // namespace refit::exec
