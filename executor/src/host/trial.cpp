// SPDX-License-Identifier: Apache-2.0
#include "trial.hpp"

#include <algorithm>
#include <utility>

#include "run.hpp"

namespace refit::exec::host {
namespace {

using namespace program;

constexpr std::uint32_t kElement = 2;

/// Programs of some givers, and after them of some takers.
class TrialPrograms {
public:
    explicit TrialPrograms(std::uint32_t ranks) {
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
            programs_.emplace_back().rank = rank;
        }
    }

    std::uint32_t add_region(std::uint32_t rank, Arena arena, const Box& box) {
        auto& program = programs_[rank];
        auto& size = program.arena_bytes[static_cast<std::size_t>(arena)];
        program.regions.push_back({{}, box, arena, kElement, size});
        size += (program.regions.back().bytes() + kAlignment - 1) / kAlignment * kAlignment;
        return static_cast<std::uint32_t>(program.regions.size() - 1);
    }

    void add_wave() {
        for (auto& program : programs_) {
            program.waves.emplace_back();
        }
    }

    /// In the last wave.
    void add_message(
        std::uint32_t giver, std::uint32_t from, std::uint32_t taker, std::uint32_t to, const Box& box) {
        Operation send;
        send.id = next_id_++;
        send.peer = taker;
        send.parts.push_back({{}, box, kElement});
        send.bytes = send.parts.back().bytes();
        send.landings.push_back({0, from, box});
        auto receive = send;
        receive.kind = OperationKind::kReceive;
        receive.peer = giver;
        receive.landings.front().region = to;
        programs_[giver].waves.back().operations.push_back(std::move(send));
        programs_[taker].waves.back().operations.push_back(std::move(receive));
    }

    [[nodiscard]] std::vector<RankProgram> take() { return std::move(programs_); }

private:
    std::vector<RankProgram> programs_;
    std::uint32_t next_id_ = 0;
};

Interval share(std::uint64_t whole, std::uint32_t part, std::uint32_t parts) {
    return {whole * part / parts, whole * (part + 1) / parts};
}

}  // namespace

std::vector<RankProgram> matrix(CopyPattern pattern, std::uint64_t run, std::uint64_t footprint) {
    const auto ranks = 2 * std::uint64_t{kRanks} * kRanks * run <= footprint ? kRanks : kFewRanks;
    const bool is_repeat = pattern == CopyPattern::kRepeat;
    const auto givers = is_repeat ? kFewRanks : ranks;
    const auto takers = is_repeat ? kReaders * kFewRanks : ranks;
    // Into how many runs a row is cut; each of them goes to `takers / cuts` takers.
    const auto cuts = is_repeat ? kFewRanks : ranks;
    const auto columns = std::max<std::uint64_t>(run / kElement, 1) * cuts;
    const auto rows = std::max<std::uint64_t>(
        givers, footprint / (1 + takers / cuts) / (columns * kElement) / givers * givers);
    const std::uint64_t shape[] = {rows, columns};
    const auto whole = Box::whole(shape);
    TrialPrograms programs{givers + takers};
    programs.add_wave();
    const auto held = [&](std::uint32_t rank) {
        return pattern == CopyPattern::kScatter ? whole.with(1, share(columns, rank, cuts))
                                                : whole.with(0, share(rows, rank, givers));
    };
    const auto wanted = [&](std::uint32_t rank) {
        return pattern == CopyPattern::kScatter ? whole.with(0, share(rows, rank, takers))
                                                : whole.with(1, share(columns, rank % cuts, cuts));
    };
    for (std::uint32_t rank = 0; rank < givers; ++rank) {
        programs.add_region(rank, Arena::kSource, held(rank));
    }
    for (std::uint32_t rank = 0; rank < takers; ++rank) {
        programs.add_region(givers + rank, Arena::kDestination, wanted(rank));
    }
    for (std::uint32_t giver = 0; giver < givers; ++giver) {
        for (std::uint32_t taker = 0; taker < takers; ++taker) {
            if (const auto box = intersection(held(giver), wanted(taker))) {
                programs.add_message(giver, 0, givers + taker, 0, *box);
            }
        }
    }
    return programs.take();
}

std::vector<RankProgram> small_messages(std::uint32_t waves, std::uint32_t copies) {
    constexpr std::uint64_t kColumns = 32;
    const std::uint64_t shape[] = {copies, 2 * kColumns};
    const auto whole = Box::whole(shape);
    TrialPrograms programs{2 * kRanks};
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        for (std::uint32_t copy = 0; copy < copies; ++copy) {
            programs.add_region(rank, Arena::kSource, whole.with(0, {copy, copy + 1}));
            programs.add_region(
                kRanks + rank, Arena::kDestination, whole.with(0, {copy, copy + 1}).with(1, {0, kColumns}));
        }
    }
    for (std::uint32_t wave = 0; wave < waves; ++wave) {
        programs.add_wave();
        for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
            for (std::uint32_t copy = 0; copy < copies; ++copy) {
                programs.add_message(
                    rank, copy, kRanks + rank, copy, whole.with(0, {copy, copy + 1}).with(1, {0, kColumns}));
            }
        }
    }
    return programs.take();
}

Result<Trial> Trial::make(const std::vector<RankProgram>& programs, std::uint32_t threads) {
    Trial trial;
    for (const auto& program : programs) {
        auto allocated = RankStorage::allocate(program);
        if (!allocated) {
            return Failure{std::move(allocated.error())};
        }
        trial.storage_.push_back(std::move(*allocated));
        for (const auto arena : {Arena::kSource, Arena::kDestination}) {
            std::fill_n(trial.storage_.back().base(arena), program.bytes_in(arena), std::byte{1});
        }
    }
    trial.work_ = work_of(programs, threads);
    trial.threads_ = threads;
    return trial;
}

Result<Seconds> Trial::run() const {
    std::vector<std::uint32_t> failed;
    const auto run = run_work(work_, storage_, Job{}, threads_, failed);
    return run ? Result<Seconds>{run->seconds} : Result<Seconds>{Failure{run.error()}};
}

std::uint64_t Trial::bytes() const noexcept {
    std::uint64_t bytes = 0;
    for (const auto in_wave : work_.bytes) {
        bytes += in_wave;
    }
    return bytes;
}

}  // namespace refit::exec::host
