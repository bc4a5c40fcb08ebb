// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/posting.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "posting_check.hpp"
#include "small_jobs.hpp"
#include "tight_settings.hpp"

namespace refit::testing_support {
namespace {

using exec::Channel;
using exec::PostedGroup;
using program::Operation;
using program::OperationKind;
using program::RankProgram;

/// Which ends a communicator matches by their order alone: from, to and channel, or all members of a group.
using Lane = std::tuple<Channel, std::vector<std::uint32_t>>;

class SerialRun {
public:
    SerialRun(const program::Schedule& schedule, std::span<const std::uint32_t> domains) {
        for (std::uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
            programs_.push_back(schedule.program_of(rank));
            groups_.push_back(exec::posted_groups(programs_.back(), domains));
        }
        at_.resize(programs_.size());
    }

    std::string fault() {
        for (std::uint32_t rank = 0; rank < programs_.size(); ++rank) {
            if (auto fault = add_ends(rank); !fault.empty()) {
                return fault;
            }
        }
        for (const auto& [lane, by_rank] : lanes_) {
            for (const auto& [rank, ids] : by_rank) {
                if (ids != by_rank.begin()->second) {
                    return "rank " + std::to_string(rank) + " has another order than rank " +
                           std::to_string(by_rank.begin()->first);
                }
            }
            if (by_rank.size() != std::get<1>(lane).size()) {
                return "an operation lacks an end";
            }
        }
        return run();
    }

private:
    std::string add_ends(std::uint32_t rank) {
        std::set<std::pair<std::uint32_t, std::uint32_t>> posted;
        for (std::uint32_t index = 0; index < groups_[rank].size(); ++index) {
            const PostedGroup& group = groups_[rank][index];
            if (std::ranges::any_of(group.after, [&](auto earlier) { return earlier >= index; })) {
                return "rank " + std::to_string(rank) + " waits for a later group";
            }
            for (const auto place : group.operations) {
                const Operation& operation = programs_[rank].waves[group.wave].operations[place];
                if (!posted.emplace(group.wave, place).second) {
                    return "an operation is posted twice";
                }
                const bool gives = operation.kind == OperationKind::kSend;
                const Lane lane{group.channel,
                                operation.is_collective() ? programs_[rank].groups[operation.group]
                                : gives                   ? std::vector{rank, operation.peer}
                                                          : std::vector{operation.peer, rank}};
                lanes_[lane][rank].emplace_back(operation.id, operation.bytes);
                ends_[operation.id] = std::get<1>(lane).size();
            }
        }
        std::size_t wanted = 0;
        for (const auto& wave : programs_[rank].waves) {
            wanted += static_cast<std::size_t>(
                std::ranges::count_if(wave.operations, [](const auto& one) { return one.bytes > 0; }));
        }
        return posted.size() == wanted ? "" : "rank " + std::to_string(rank) + " leaves operations out";
    }

    /// Ids of a rank's present group.
    std::vector<std::uint32_t> present(std::uint32_t rank) const {
        std::vector<std::uint32_t> ids;
        const PostedGroup& group = groups_[rank][at_[rank]];
        for (const auto place : group.operations) {
            ids.push_back(programs_[rank].waves[group.wave].operations[place].id);
        }
        return ids;
    }

    std::string run() {
        std::map<std::uint32_t, std::size_t> standing;  ///< By id: how many ends stand in present groups.
        std::deque<std::uint32_t> arrived;              ///< Ranks that came to another group.
        for (std::uint32_t rank = 0; rank < programs_.size(); ++rank) {
            arrived.push_back(rank);
        }
        std::size_t over = 0;
        while (!arrived.empty()) {
            const auto rank = arrived.front();
            arrived.pop_front();
            if (at_[rank] == groups_[rank].size()) {
                ++over;
                continue;
            }
            for (const auto id : present(rank)) {
                ++standing[id];
            }
            for (std::uint32_t other = 0; other < programs_.size(); ++other) {
                while (
                    at_[other] < groups_[other].size() && !std::ranges::count(arrived, other) &&
                    std::ranges::all_of(present(other), [&](auto id) { return standing[id] == ends_[id]; })) {
                    ++at_[other];
                    arrived.push_back(other);
                }
            }
        }
        return over == programs_.size() ? ""
                                        : std::to_string(programs_.size() - over) + " ranks wait for ever";
    }

    std::vector<RankProgram> programs_;
    std::vector<std::vector<PostedGroup>> groups_;
    std::vector<std::size_t> at_;
    std::map<Lane, std::map<std::uint32_t, std::vector<std::pair<std::uint32_t, std::uint64_t>>>> lanes_;
    std::map<std::uint32_t, std::size_t> ends_;
};

}  // namespace

std::string fault_of_groups(const program::Schedule& schedule, std::span<const std::uint32_t> domains) {
    return SerialRun{schedule, domains}.fault();
}

}  // namespace refit::testing_support

namespace refit::exec {
namespace {

using testing_support::fault_of_groups;

/// All six methods, as far as they take the workload.
std::vector<Plan> plans_of(const testing_support::RandomRefit& refit) {
    std::vector<Plan> plans;
    for (const Method method : {Method::kGatherBroadcast,
                                Method::kHybrid,
                                Method::kDirect,
                                Method::kStriped,
                                Method::kM2n,
                                Method::kOptimal}) {
        if (auto plan = make_plan(method, refit.cluster, refit.rates, refit.workload)) {
            plans.push_back(std::move(*plan));
        }
    }
    return plans;
}

TEST(Posting, GroupsOfAllRanksMatchAndNeverWaitForEachOtherInARing) {
    std::size_t plans = 0;
    for (std::uint64_t seed = 0; seed < 24; ++seed) {
        testing_support::Dice dice{seed};
        const auto refit = testing_support::random_refit(dice, testing_support::small_nodes(8), 600);
        for (const Plan& plan : plans_of(refit)) {
            for (const auto& settings : {program::Settings{}, testing_support::tight_settings()}) {
                const program::Schedule schedule{plan, refit.workload, refit.cluster.train_gpus(), settings};
                for (const std::uint32_t size : {1000U, 8U, 3U}) {
                    std::vector<std::uint32_t> starts;
                    for (std::uint32_t rank = 0; rank < schedule.ranks(); rank += size) {
                        starts.push_back(rank);
                    }
                    EXPECT_EQ(fault_of_groups(schedule, domains_to_split(starts, schedule.ranks(), schedule.members())), "")
                        << seed << ", " << name_of(plan.method) << ", domains of " << size;
                }
                ++plans;
            }
        }
    }
    EXPECT_GE(plans, 2U * 24U * 4U);
}

// 4 trainers' rows to TP2 x 2 engines, domains of 4: trainers 0-3, generators 4-7. Each trainer sends to all
// four, over the network; nothing stays inside. With one domain of 6 and one of 2, ranks 4 and 5 are reached
// by NVLink.
TEST(Posting, KeepsWhatStaysInADomainApart) {
    const auto small = testing_support::job_of("", {{8, 16, 8}, 4, 1, 1, 1, 2, 2}, Method::kDirect, 4);
    const auto schedule = small.schedule();
    const auto channels = [&](const std::vector<std::uint32_t>& domains) {
        std::vector<std::pair<Channel, std::size_t>> found;
        for (const auto& group : posted_groups(schedule.program_of(0), domains)) {
            found.emplace_back(group.channel, group.operations.size());
        }
        return found;
    };
    using Found = std::vector<std::pair<Channel, std::size_t>>;
    EXPECT_EQ(channels({}), (Found{{Channel::kAll, 4}}));
    EXPECT_EQ(channels({0, 0, 0, 0, 1, 1, 1, 1}), (Found{{Channel::kAll, 4}}));
    EXPECT_EQ(channels({0, 0, 0, 0, 0, 0, 1, 1}), (Found{{Channel::kDomain, 2}, {Channel::kAll, 2}}));
}

TEST(Posting, SplitsWhereThereAreSeveralDomainsAndOneOfSeveralRanks) {
    const std::vector all{0U, 1U, 2U, 3U, 4U};
    const auto first = [&](std::size_t count) { return std::span{all}.first(count); };
    EXPECT_TRUE(domains_to_split(std::vector{0U}, 5, all).empty());
    EXPECT_TRUE(domains_to_split({}, 5, all).empty());
    EXPECT_TRUE(domains_to_split(std::vector{0U, 1U, 2U}, 3, first(3)).empty());
    EXPECT_EQ(domains_to_split(std::vector{0U, 1U, 2U}, 4, first(4)), (std::vector{0U, 1U, 2U, 2U}));
    EXPECT_EQ(domains_to_split(std::vector{0U, 3U}, 5, all), (std::vector{0U, 0U, 0U, 1U, 1U}));
    // Of those who are left, no two are of one domain, or all are.
    EXPECT_TRUE(domains_to_split(std::vector{0U, 3U}, 5, std::vector{1U, 4U}).empty());
    EXPECT_TRUE(domains_to_split(std::vector{0U, 3U}, 5, first(3)).empty());
    EXPECT_FALSE(domains_to_split(std::vector{0U, 3U}, 5, std::vector{0U, 2U, 4U}).empty());
}

// Direct transfers read sources and write destinations once: a group waits only for the one that had its
// slot.
TEST(Posting, LetsTheNextGroupBePackedWhileOneIsOnTheWire) {
    const auto small = testing_support::job_of("", {{16, 16, 8}, 4, 1, 1, 1, 4, 2}, Method::kDirect, 4);
    auto settings = testing_support::tight_settings();
    settings.most_operations = 2;
    const auto schedule = small.schedule(settings);
    const auto groups = posted_groups(schedule.program_of(0), {});
    ASSERT_EQ(groups.size(), 4U);  // Eight generators, two operations a wave.
    for (std::uint32_t index = 0; index < groups.size(); ++index) {
        EXPECT_EQ(groups[index].slot, index % 2);
        EXPECT_EQ(groups[index].after, index < 2 ? std::vector<std::uint32_t>{} : std::vector{index - 2});
    }
}

/// What a group gives was there before it: no group conflicts with one that it does not wait for, through
/// regions or memory.
TEST(Posting, WaitsForWhatItGivesAndForMemoryThatItChanges) {
    std::size_t waits = 0;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
        testing_support::Dice dice{seed};
        const auto refit = testing_support::random_refit(dice, testing_support::small_nodes(4), 600);
        for (const Plan& plan : plans_of(refit)) {
            const program::Schedule schedule{plan, refit.workload, refit.cluster.train_gpus(), testing_support::tight_settings()};
            for (std::uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
                const auto program = schedule.program_of(rank);
                const auto groups = posted_groups(program, {});
                // By byte of the two arenas that change: the groups that wrote and read it last.
                std::map<std::pair<program::Arena, std::uint64_t>, std::pair<std::uint32_t, std::uint32_t>>
                    last;
                std::vector<std::set<std::uint32_t>> over(groups.size());
                for (std::uint32_t index = 0; index < groups.size(); ++index) {
                    for (const auto earlier : groups[index].after) {
                        over[index].insert(earlier);
                        over[index].insert(over[earlier].begin(), over[earlier].end());
                        for (std::uint32_t before = 0; before < earlier; ++before) {
                            if (groups[before].channel == groups[earlier].channel) {
                                over[index].insert(before);
                            }
                        }
                    }
                    for (const auto place : groups[index].operations) {
                        const auto& operation = program.waves[groups[index].wave].operations[place];
                        for (const auto& landing : operation.landings) {
                            const auto& region = program.regions[landing.region];
                            if (region.arena == program::Arena::kSource) {
                                continue;
                            }
                            const bool changes = !operation.gives(operation.parts[landing.part]);
                            for (std::uint64_t byte = 0; byte < region.bytes(); ++byte) {
                                // Coarse: the whole region, where boxes of it may be apart; so only scratch,
                                // which is whole.
                                if (region.arena != program::Arena::kScratch) {
                                    break;
                                }
                                auto& [wrote, read] = last.try_emplace({region.arena, region.offset + byte},
                                                                       program::kNone,
                                                                       program::kNone)
                                                          .first->second;
                                for (const auto other : {wrote, changes ? read : wrote}) {
                                    if (other != program::kNone && other != index) {
                                        ++waits;
                                        ASSERT_TRUE(over[index].contains(other) ||
                                                    groups[other].wave == groups[index].wave)
                                            << seed << ", " << name_of(plan.method) << ", rank " << rank;
                                    }
                                }
                                (changes ? wrote : read) = index;
                            }
                        }
                    }
                }
            }
        }
    }
    EXPECT_GT(waits, 1000U);
}

}  // namespace
}  // namespace refit::exec
