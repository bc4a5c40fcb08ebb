// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "copies.hpp"
#include "refit/exec/host_rates.hpp"
#include "refit/exec/measure.hpp"
#include "refit/exec/rank_storage.hpp"
#include "run.hpp"

namespace refit::exec {
namespace {

using namespace program;

constexpr std::uint32_t kRanks = 8;  ///< On each side.
constexpr std::uint32_t kElement = 2;

/// Programs of `kRanks` givers and as many takers.
class ProbePrograms {
public:
    ProbePrograms() {
        for (std::uint32_t rank = 0; rank < 2 * kRanks; ++rank) {
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

    [[nodiscard]] const std::vector<RankProgram>& get() const { return programs_; }

private:
    std::vector<RankProgram> programs_;
    std::uint32_t next_id_ = 0;
};

Interval share(std::uint64_t whole, std::uint32_t part) {
    return {whole * part / kRanks, whole * (part + 1) / kRanks};
}

/// A matrix whose rows, or columns, go from 8 givers to 8 takers of its columns, or rows; or whole to each of
/// them.
ProbePrograms matrix(CopyPattern pattern, std::uint64_t run, std::uint64_t footprint) {
    const auto columns =
        std::max<std::uint64_t>(run / kElement, 1) * (pattern == CopyPattern::kRepeat ? 1 : kRanks);
    const auto sides = pattern == CopyPattern::kRepeat ? 1 + kRanks : 2;
    const auto rows =
        std::max<std::uint64_t>(kRanks, footprint / sides / (columns * kElement) / kRanks * kRanks);
    const std::uint64_t shape[] = {rows, columns};
    const auto whole = Box::whole(shape);
    ProbePrograms programs;
    programs.add_wave();
    const auto held = [&](std::uint32_t rank) {
        return pattern == CopyPattern::kScatter ? whole.with(1, share(columns, rank))
                                                : whole.with(0, share(rows, rank));
    };
    const auto wanted = [&](std::uint32_t rank) {
        return pattern == CopyPattern::kRepeat    ? whole
               : pattern == CopyPattern::kScatter ? whole.with(0, share(rows, rank))
                                                  : whole.with(1, share(columns, rank));
    };
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        programs.add_region(rank, Arena::kSource, held(rank));
        programs.add_region(kRanks + rank, Arena::kDestination, wanted(rank));
    }
    for (std::uint32_t giver = 0; giver < kRanks; ++giver) {
        for (std::uint32_t taker = 0; taker < kRanks; ++taker) {
            if (const auto box = intersection(held(giver), wanted(taker))) {
                programs.add_message(giver, 0, kRanks + taker, 0, *box);
            }
        }
    }
    return programs;
}

/// `waves` waves of one small message from each giver, or as many copies of a few bytes in one wave.
ProbePrograms small_messages(std::uint32_t waves, std::uint32_t copies) {
    constexpr std::uint64_t kColumns = 32;
    const std::uint64_t shape[] = {copies, 2 * kColumns};
    const auto whole = Box::whole(shape);
    ProbePrograms programs;
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
    return programs;
}

/// The median of some runs, and the bytes that one moves.
struct Timed {
    Seconds seconds;
    std::uint64_t bytes = 0;
};

Result<Timed> timed(const ProbePrograms& programs, std::uint32_t threads) {
    constexpr int kRuns = 7;
    std::vector<RankStorage> storage;
    for (const auto& program : programs.get()) {
        auto allocated = RankStorage::allocate(program);
        if (!allocated) {
            return Failure{std::move(allocated.error())};
        }
        storage.push_back(std::move(*allocated));
        // Touched, so that no run pays for new pages.
        for (const auto arena : {Arena::kSource, Arena::kDestination}) {
            std::fill_n(storage.back().base(arena), program.bytes_in(arena), std::byte{1});
        }
    }
    const auto work = host::work_of(programs.get(), threads);
    std::vector<Seconds> times;
    for (int i = 0; i <= kRuns; ++i) {
        std::vector<std::uint32_t> failed;
        const auto run = host::run_work(work, storage, Job{}, threads, failed);
        if (!run) {
            return Failure{run.error()};
        }
        if (i > 0) {
            times.push_back(run->seconds);
        }
    }
    Timed result{spread_of(std::move(times)).median};
    for (const auto bytes : work.bytes) {
        result.bytes += bytes;
    }
    return result;
}

}  // namespace

std::string_view name_of(CopyPattern pattern) noexcept {
    switch (pattern) {
        case CopyPattern::kScatter:
            return "scatter";
        case CopyPattern::kRepeat:
            return "repeat";
        case CopyPattern::kGather:
            break;
    }
    return "gather";
}

Result<HostRates> probe_host(std::uint32_t threads,
                             Bytes most_bytes,
                             const std::function<void(double)>& tell) {
    constexpr std::uint64_t kRuns[] = {16, 64, 256, 1024, 8192, 65536};
    constexpr std::uint64_t kFootprints[] = {
        std::uint64_t{2} << 20U, std::uint64_t{32} << 20U, std::uint64_t{512} << 20U};
    HostRates rates;
    rates.threads = threads;
    std::vector<std::uint32_t> counts{1};
    if (threads > 1) {
        counts.push_back(threads);
    }
    std::size_t done = 0;
    const auto all = counts.size() * std::size(kRuns) * std::size(kFootprints) * 3;
    for (const auto count : counts) {
        for (const auto pattern : {CopyPattern::kGather, CopyPattern::kScatter, CopyPattern::kRepeat}) {
            for (const auto run : kRuns) {
                for (const auto footprint : kFootprints) {
                    const auto bytes = std::min(footprint, most_bytes.count());
                    const auto time = timed(matrix(pattern, run, bytes), count);
                    if (!time) {
                        return Failure{time.error()};
                    }
                    rates.copies.push_back({pattern,
                                            count,
                                            run,
                                            bytes,
                                            static_cast<double>(time->bytes) / time->seconds.value()});
                    if (tell) {
                        tell(static_cast<double>(++done) / static_cast<double>(all));
                    }
                }
            }
        }
    }
    constexpr std::uint32_t kWaves = 400;
    constexpr std::uint32_t kCopies = 2000;
    const auto waves = timed(small_messages(kWaves, 1), threads);
    const auto copies = timed(small_messages(1, kCopies), 1);
    if (!waves || !copies) {
        return Failure{waves ? copies.error() : waves.error()};
    }
    rates.wave = waves->seconds * (1.0 / kWaves);
    rates.copy = copies->seconds * (1.0 / (kCopies * kRanks));
    return rates;
}

}  // namespace refit::exec
