// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/readiness.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "small_jobs.hpp"

namespace refit::exec {
namespace {

using program::Arena;
using program::Operation;
using program::OperationKind;
using program::RankProgram;

Box rows(std::uint64_t begin, std::uint64_t end) {
    const std::array<std::uint64_t, 2> shape{8, 16};
    return Box::whole(shape).with(0, {begin, end});
}

/// A program of one tensor of 8 x 16 bytes, whose operations are added wave by wave.
class ProgramMaker {
public:
    /// Returns the region's index.
    std::uint32_t region(Arena arena,
                         std::uint64_t offset,
                         std::uint32_t first_wave,
                         std::uint32_t last_wave) {
        program_.regions.push_back({{}, rows(0, 8), arena, 1, offset, first_wave, last_wave});
        return static_cast<std::uint32_t>(program_.regions.size() - 1);
    }
    void message(
        std::uint32_t wave, OperationKind kind, std::uint32_t peer, std::uint32_t region, const Box& box) {
        Operation operation;
        operation.kind = kind;
        operation.id = next_id_++;
        operation.peer = peer;
        operation.bytes = box.volume();
        operation.parts.push_back({{}, box, 1, 0, 0});
        operation.landings.push_back({0, region, box});
        program_.waves.resize(std::max<std::size_t>(program_.waves.size(), wave + 1));
        program_.waves[wave].operations.push_back(std::move(operation));
    }
    [[nodiscard]] const RankProgram& program() const { return program_; }

private:
    RankProgram program_;
    std::uint32_t next_id_ = 0;
};

std::vector<Place> all_ready(Readiness& readiness) {
    std::vector<Place> places;
    while (const auto place = readiness.next()) {
        places.push_back(*place);
    }
    return places;
}

using Places = std::vector<Place>;

TEST(Readiness, PostsALaterWaveWhileAnEarlierOneIsOpen) {
    ProgramMaker maker;
    const auto region = maker.region(Arena::kDestination, 0, 0, 1);
    maker.message(0, OperationKind::kReceive, 1, region, rows(0, 2));
    maker.message(1, OperationKind::kReceive, 2, region, rows(2, 4));
    Readiness readiness{maker.program()};
    EXPECT_EQ(all_ready(readiness), (Places{{0, 0}, {1, 0}}));
    readiness.finish({1, 0});
    EXPECT_EQ(readiness.waves_done(), 0U);
    readiness.finish({0, 0});
    EXPECT_EQ(readiness.waves_done(), 2U);
    EXPECT_TRUE(readiness.is_done());
}

TEST(Readiness, PassesOnWhatIsThereBeforeItsWaveIsComplete) {
    // Wave 1 sends on what wave 0 brings from rank 1; what wave 0 brings from rank 2 is of no concern to it.
    ProgramMaker maker;
    const auto region = maker.region(Arena::kDestination, 0, 0, 1);
    maker.message(0, OperationKind::kReceive, 1, region, rows(0, 4));
    maker.message(0, OperationKind::kReceive, 2, region, rows(4, 8));
    maker.message(1, OperationKind::kSend, 3, region, rows(1, 2));
    Readiness readiness{maker.program()};
    EXPECT_EQ(all_ready(readiness), (Places{{0, 0}, {0, 1}}));
    readiness.finish({0, 0});
    EXPECT_EQ(readiness.waves_done(), 0U);
    EXPECT_EQ(all_ready(readiness), (Places{{1, 0}}));
}

TEST(Readiness, KeepsWhatIsBeingSentUntilItHasGone) {
    ProgramMaker maker;
    const auto region = maker.region(Arena::kScratch, 0, 0, 1);
    maker.message(0, OperationKind::kSend, 1, region, rows(0, 4));
    maker.message(1, OperationKind::kReceive, 2, region, rows(3, 5));
    Readiness readiness{maker.program()};
    EXPECT_EQ(all_ready(readiness), (Places{{0, 0}}));
    readiness.finish({0, 0});
    EXPECT_EQ(all_ready(readiness), (Places{{1, 0}}));
}

TEST(Readiness, KeepsMessagesOfAPairInOrderBothWaysAndLanesApart) {
    ProgramMaker maker;
    const auto from = maker.region(Arena::kSource, 0, 0, 1);
    maker.message(0, OperationKind::kSend, 1, from, rows(0, 1));
    maker.message(1, OperationKind::kSend, 1, from, rows(1, 2));
    Readiness in_order{maker.program()};
    EXPECT_EQ(all_ready(in_order), (Places{{0, 0}}));

    auto program = maker.program();
    program.waves[1].operations[0].lane = 1;
    Readiness apart{program};
    EXPECT_EQ(all_ready(apart), (Places{{0, 0}, {1, 0}}));
}

TEST(Readiness, WaitsForMemoryThatAnotherRegionHadBefore) {
    // The second region lies in bytes 64 to 192, where the first ends at 128 and is in use in waves 0 and 1.
    ProgramMaker maker;
    const auto first = maker.region(Arena::kScratch, 0, 0, 1);
    const auto second = maker.region(Arena::kScratch, 64, 2, 2);
    const auto third = maker.region(Arena::kScratch, 192, 2, 2);
    maker.message(0, OperationKind::kReceive, 1, first, rows(0, 8));
    maker.message(1, OperationKind::kSend, 2, first, rows(0, 8));
    maker.message(2, OperationKind::kReceive, 3, second, rows(0, 8));
    maker.message(2, OperationKind::kReceive, 4, third, rows(0, 8));
    Readiness readiness{maker.program()};
    EXPECT_EQ(all_ready(readiness), (Places{{0, 0}, {2, 1}}));
    readiness.finish({0, 0});
    EXPECT_EQ(all_ready(readiness), (Places{{1, 0}}));
    readiness.finish({1, 0});
    EXPECT_EQ(all_ready(readiness), (Places{{2, 0}}));
}

TEST(Readiness, RunsAheadByNoMoreWavesAndOperationsThanAllowed) {
    ProgramMaker maker;
    const auto from = maker.region(Arena::kSource, 0, 0, 3);
    for (std::uint32_t i = 0; i < 4; ++i) {
        maker.message(i, OperationKind::kSend, i + 1, from, rows(i, i + 1));
    }
    Readiness two_waves{maker.program(), {2, 64}};
    EXPECT_EQ(all_ready(two_waves), (Places{{0, 0}, {1, 0}}));
    two_waves.finish({1, 0});  // Wave 0 is still open.
    EXPECT_EQ(all_ready(two_waves), Places{});
    two_waves.finish({0, 0});
    EXPECT_EQ(all_ready(two_waves), (Places{{2, 0}, {3, 0}}));

    Readiness one_operation{maker.program(), {4, 1}};
    EXPECT_EQ(all_ready(one_operation), (Places{{0, 0}}));
    one_operation.finish({0, 0});
    EXPECT_EQ(all_ready(one_operation), (Places{{1, 0}}));

    EXPECT_THROW((Readiness{maker.program(), {0, 1}}), std::logic_error);
}

TEST(Readiness, PostsReceivesOfAWaveFirstAndPassesOverEmptyOnes) {
    ProgramMaker maker;
    const auto from = maker.region(Arena::kSource, 0, 0, 0);
    const auto to = maker.region(Arena::kDestination, 0, 0, 0);
    maker.message(0, OperationKind::kSend, 1, from, rows(0, 8));
    maker.message(0, OperationKind::kSend, 2, from, rows(3, 3));
    maker.message(0, OperationKind::kReceive, 3, to, rows(0, 8));
    Readiness readiness{maker.program()};
    EXPECT_EQ(all_ready(readiness), (Places{{0, 2}, {0, 0}}));
    readiness.finish({0, 2});
    readiness.finish({0, 0});
    EXPECT_TRUE(readiness.is_done());
    readiness.restart();
    EXPECT_FALSE(readiness.is_done());
    EXPECT_EQ(all_ready(readiness), (Places{{0, 2}, {0, 0}}));
}

/// All ranks of a job, whose messages end in an order that dice choose.
class Ranks {
public:
    explicit Ranks(const program::Schedule& schedule, const Ahead& ahead) {
        for (std::uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
            programs_.push_back(schedule.program_of(rank));
        }
        for (const auto& program : programs_) {
            readiness_.emplace_back(program, ahead);
        }
    }

    /// Whether all ranks came to an end, whatever the order.
    bool run(std::mt19937& dice) {
        while (true) {
            for (std::uint32_t rank = 0; rank < programs_.size(); ++rank) {
                for (const auto& place : all_ready(readiness_[rank])) {
                    open_[programs_[rank].waves[place.wave].operations[place.index].id].push_back(
                        {rank, place});
                }
            }
            std::vector<std::uint32_t> complete;
            for (const auto& [id, ends] : open_) {
                const auto& [rank, place] = ends.front();
                const auto& operation = programs_[rank].waves[place.wave].operations[place.index];
                const auto all =
                    operation.is_collective() ? programs_[rank].groups[operation.group].size() : 2;
                if (ends.size() == all) {
                    complete.push_back(id);
                }
            }
            if (complete.empty()) {
                return open_.empty() && std::ranges::all_of(readiness_, &Readiness::is_done);
            }
            const auto id = complete[dice() % complete.size()];
            for (const auto& [rank, place] : open_[id]) {
                readiness_[rank].finish(place);
            }
            open_.erase(id);
        }
    }

private:
    std::vector<RankProgram> programs_;
    std::vector<Readiness> readiness_;
    std::map<std::uint32_t, std::vector<std::pair<std::uint32_t, Place>>> open_;  ///< By operation.
};

TEST(Readiness, EndsOnAllRanksWhateverTheOrderByEveryMethod) {
    std::mt19937 dice{7};
    program::Settings settings;
    settings.most_operations = 4;
    settings.least_chunk = Bytes{64U};
    settings.pack_bytes = Bytes{4096U};
    settings.wave_bytes = Bytes{2048U};
    for (const auto method : testing_support::kMethods) {
        // 8 x 64 x 16: 4 trainers by experts, 4 copies of 2 tensor-parallel ranks; nodes of 4.
        const auto job = testing_support::job_of("small", {{8, 64, 16}, 4, 1, 1, 1, 2, 4}, method, 4);
        const auto schedule = job.schedule(settings);
        for (const Ahead ahead : {Ahead{1, 1}, Ahead{2, 3}, Ahead{}, Ahead{1000, 1000}}) {
            EXPECT_TRUE((Ranks{schedule, ahead}.run(dice)))
                << name_of(method) << ", " << ahead.waves << " waves";
        }
    }
}

}  // namespace
}  // namespace refit::exec
