// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/control_plane.hpp"

#include <atomic>
#include <filesystem>
#include <latch>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace refit::exec {
namespace {

using namespace std::chrono_literals;

std::string fresh_file(const char* name) {
    return (std::filesystem::temp_directory_path() / (std::string{name} + std::to_string(::getpid())))
        .string();
}

/// Runs so many ranks as threads; `act` gets the rank and its plane, or why it has none.
template <class Act>
void run_ranks(std::uint32_t ranks,
               const std::string& address,
               std::chrono::milliseconds deadline,
               Act&& act) {
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
            act(rank, join_job({rank, ranks, rank}, {address, {}}, deadline));
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
}

TEST(ControlPlane, GivesAllWhatEachGaveByRank) {
    const auto file = fresh_file("refit-control-");
    std::vector<int> right(8, 0);
    run_ranks(8, "file://" + file, 20s, [&](std::uint32_t rank, auto plane) {
        ASSERT_TRUE(plane.has_value()) << plane.error().front().message;
        for (int round = 0; round < 20; ++round) {
            // Texts of unlike length; one of 100,000 bytes, larger than what a socket takes at once.
            const auto text = std::string(rank == 5 ? 100000 : rank, static_cast<char>('a' + rank));
            const auto all = (*plane)->exchange(text, 20s);
            ASSERT_TRUE(all.has_value()) << all.error().front().message;
            ASSERT_EQ(all->size(), 8U);
            right[rank] += (*all)[rank] == text && (*all)[5].size() == 100000 && (*all)[0].empty() ? 1 : 0;
        }
    });
    EXPECT_EQ(right, std::vector<int>(8, 20));
    EXPECT_FALSE(std::filesystem::exists(file)) << "the next job would find the last one's";
}

TEST(ControlPlane, NamesARankThatIsGoneToAllOthers) {
    std::vector<std::string> said(4);
    run_ranks(4, "file://" + fresh_file("refit-gone-"), 20s, [&](std::uint32_t rank, auto plane) {
        ASSERT_TRUE(plane.has_value());
        if (rank == 2) {
            plane->reset();
            return;
        }
        const auto all = (*plane)->exchange("", 20s);
        ASSERT_FALSE(all.has_value());
        said[rank] = all.error().front().rule + ": " + all.error().front().message;
    });
    for (const std::uint32_t rank : {0U, 1U, 3U}) {
        EXPECT_EQ(said[rank], "rank-died: rank 2 is gone, as all ranks met");
    }
}

TEST(ControlPlane, NamesARankThatStandsStillAtTheDeadline) {
    std::vector<std::string> said(3);
    const auto begin = std::chrono::steady_clock::now();
    run_ranks(3, "file://" + fresh_file("refit-still-"), 20s, [&](std::uint32_t rank, auto plane) {
        ASSERT_TRUE(plane.has_value());
        if (rank == 1) {
            std::this_thread::sleep_for(600ms);
            return;
        }
        const auto all = (*plane)->exchange("", 200ms);
        ASSERT_FALSE(all.has_value());
        said[rank] = all.error().front().rule + ": " + all.error().front().message;
    });
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 15s);
    EXPECT_EQ(said[0], "rank-stalled: rank 1 did not answer by the deadline, as all ranks met");
    EXPECT_EQ(said[2], said[0]);
}

// Of ranks 2, 3, 5, 7, 8 and 9, 5 is gone and 8 says nothing; 7 has given up before the others knew, which
// wait for it. The rest goes on, without 9, which leaves.
TEST(ControlPlane, MustersThoseWhoAreLeftAndGoesOnWithThem) {
    const std::vector<std::uint32_t> ranks{2, 3, 5, 7, 8, 9};
    const auto file = fresh_file("refit-muster-");
    std::vector<std::thread> threads;
    std::atomic<int> right = 0;
    std::latch are_done{3};
    for (std::uint32_t place = 0; place < ranks.size(); ++place) {
        threads.emplace_back([&, place] {
            auto plane = join_job({place, 6, 0}, {"file://" + file, {}}, 20s, ranks).value();
            EXPECT_TRUE(plane->exchange("", 20s).has_value());
            if (ranks[place] == 5) {
                return;
            }
            if (ranks[place] == 8) {
                are_done.wait();
                return;
            }
            if (ranks[place] != 7) {
                const auto failed = plane->exchange("lost", 20s);
                EXPECT_FALSE(failed.has_value());
                EXPECT_EQ(failed.error().front().rule, "rank-died");
            }
            const auto gone = plane->muster(300ms);
            EXPECT_EQ(gone.value(), (std::vector<std::uint32_t>{5, 8}));
            if (ranks[place] == 9) {
                return;
            }
            plane->keep(std::vector<std::uint32_t>{2, 3, 7});
            const auto all = plane->exchange(std::to_string(ranks[place]), 20s);
            right += all.value() == std::vector<std::string>{"2", "3", "7"} ? 1 : 0;
            are_done.count_down();
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(right, 3);
}

TEST(ControlPlane, SeesThatAnotherIsGoneWithoutWaiting) {
    std::latch is_gone{1};
    run_ranks(3, "file://" + fresh_file("refit-glance-"), 20s, [&](std::uint32_t rank, auto plane) {
        EXPECT_TRUE((*plane)->exchange("", 20s).has_value());
        if (rank == 1) {
            plane->reset();
            is_gone.count_down();
            return;
        }
        is_gone.wait();
        if (rank == 0) {
            while (!(*plane)->is_broken()) {
                std::this_thread::yield();
            }
            EXPECT_EQ((*plane)->exchange("", 20s).error().front().message,
                      "rank 1 is gone, as all ranks met");
        } else {
            // Only once the first says so.
            while (!(*plane)->is_broken()) {
                std::this_thread::yield();
            }
        }
    });
}

TEST(ControlPlane, NamesThoseWhoDoNotCome) {
    const auto plane = join_job({0, 3, 0}, {"file://" + fresh_file("refit-alone-"), {}}, 100ms);
    ASSERT_FALSE(plane.has_value());
    EXPECT_EQ(plane.error().front().rule, "rank-stalled");
    EXPECT_EQ(plane.error().front().message, "no word by the deadline of rank 1, rank 2");
}

TEST(ControlPlane, RefusesAnAddressThatIsNone) {
    const auto plane = join_job({1, 2, 1}, {"udp://somewhere", {}}, 100ms);
    ASSERT_FALSE(plane.has_value());
    EXPECT_EQ(plane.error().front().rule, "rendezvous");
    EXPECT_NE(plane.error().front().message.find("'udp://somewhere'"), std::string::npos);
    EXPECT_FALSE(join_job({1, 2, 1}, {"", {}}, 100ms).has_value());
}

TEST(ControlPlane, IsTrivialForOneProcess) {
    const auto plane = join_job({0, 1, 0}, {}, 100ms);
    EXPECT_EQ((*plane)->exchange("me", 1s).value(), std::vector<std::string>{"me"});
}

TEST(ControlPlane, ReadsThePlaceFromWhicheverLauncherThereIs) {
    std::map<std::string, std::string> variables;
    const auto lookup = [&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
    };
    EXPECT_EQ(process_place(lookup).error().front().rule, "launcher");
    variables = {{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "1"}};
    EXPECT_EQ(process_place(lookup)->rank, 5U);
    variables["OMPI_COMM_WORLD_RANK"] = "3";
    variables["OMPI_COMM_WORLD_SIZE"] = "4";
    variables["OMPI_COMM_WORLD_LOCAL_RANK"] = "2";
    EXPECT_EQ(process_place(lookup)->ranks, 4U);
    variables["REFIT_RANK"] = "0";
    variables["REFIT_RANKS"] = "2";
    variables["REFIT_LOCAL_RANK"] = "x";
    EXPECT_EQ(process_place(lookup)->ranks, 4U) << "an incomplete set is passed over";
    variables["REFIT_LOCAL_RANK"] = "0";
    EXPECT_EQ(process_place(lookup)->ranks, 2U);
}

}  // namespace
}  // namespace refit::exec
