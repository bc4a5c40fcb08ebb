// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <utility>

#include "refit/exec/host_rates.hpp"
#include "refit/exec/measure.hpp"
#include "refit/exec/yardstick.hpp"
#include "trial.hpp"

namespace refit::exec {
namespace {

/// Times each entry of the table once a round: what disturbs the machine for a second then spoils one round
/// of an entry, not the entry.
constexpr int kRounds = 5;
constexpr int kRuns = 2;
/// No round begins after it.
constexpr std::chrono::seconds kLongest{80};

/// Runs of all rounds, as multiples of what the yardstick took around them, and the bytes that one moves.
struct Timed {
    std::vector<Seconds> multiples;
    std::uint64_t bytes = 0;

    [[nodiscard]] Seconds typical(Seconds yardstick) const {
        return spread_of(multiples).median * yardstick.value();
    }
};

/// Times copies, and before and after each set of them the yardstick: the machine's speed changes by a third
/// and more from one second to another, and what is compared must be of the same second.
class Timer {
public:
    static Result<Timer> make(std::uint32_t threads, Bytes most_bytes) {
        auto yardstick = Yardstick::make(threads, most_bytes);
        if (!yardstick) {
            return Failure{std::move(yardstick.error())};
        }
        Timer timer{std::move(*yardstick)};
        auto first = timer.look();
        return first ? Result<Timer>{std::move(timer)} : Result<Timer>{Failure{std::move(first.error())}};
    }

    /// One more round, in memory of its own: where pages lie tells, too. Its first run does not count.
    Result<void> time_again(const std::vector<program::RankProgram>& programs,
                            std::uint32_t threads,
                            Timed& timed) {
        const auto trial = host::Trial::make(programs, threads);
        if (!trial) {
            return Failure{trial.error()};
        }
        timed.bytes = trial->bytes();
        std::vector<Seconds> runs;
        for (int i = 0; i <= kRuns; ++i) {
            const auto seconds = trial->run();
            if (!seconds) {
                return Failure{seconds.error()};
            }
            if (i > 0) {
                runs.push_back(*seconds);
            }
        }
        const auto before = moments_.back();
        if (auto looked = look(); !looked) {
            return looked;
        }
        const auto around = (before + moments_.back()).value() / 2.0;
        for (const auto run : runs) {
            timed.multiples.push_back(run * (1.0 / around));
        }
        return {};
    }

    [[nodiscard]] Seconds yardstick() const { return spread_of(moments_).median; }

private:
    explicit Timer(Yardstick yardstick) : yardstick_{std::move(yardstick)} {}

    Result<void> look() {
        const auto moment = yardstick_.measure();
        if (!moment) {
            return Failure{moment.error()};
        }
        moments_.push_back(*moment);
        return {};
    }

    Yardstick yardstick_;
    std::vector<Seconds> moments_;
};

/// Entries of the table, without rates.
std::vector<CopyRate> entries(std::uint32_t threads, Bytes most_bytes) {
    constexpr std::uint64_t kRunBytes[] = {16, 64, 256, 1024, 4096, 16384, 131072, 1U << 20U, 8U << 20U};
    constexpr std::uint64_t kFootprints[] = {
        std::uint64_t{2} << 20U, std::uint64_t{32} << 20U, std::uint64_t{512} << 20U};
    std::vector<CopyRate> entries;
    for (const auto count : {1U, threads}) {
        if (count == 1 && !entries.empty()) {
            continue;  // One thread is all there are.
        }
        for (const auto pattern : {CopyPattern::kGather, CopyPattern::kScatter, CopyPattern::kRepeat}) {
            for (const auto run : kRunBytes) {
                for (const auto most : kFootprints) {
                    const auto footprint = std::min(most, most_bytes.count());
                    const bool is_known = !entries.empty() && entries.back().run == run &&
                                          entries.back().footprint == footprint;
                    if (!is_known && footprint >= host::least_footprint(pattern, run)) {
                        entries.push_back({pattern, count, run, footprint, 0.0});
                    }
                }
            }
        }
    }
    return entries;
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
    HostRates rates;
    rates.threads = threads;
    rates.copies = entries(threads, most_bytes);
    auto timer = Timer::make(threads, most_bytes);
    if (!timer) {
        return Failure{std::move(timer.error())};
    }
    constexpr std::uint32_t kWaves = 400;
    constexpr std::uint32_t kCopies = 2000;
    std::vector<Timed> timed(rates.copies.size());
    Timed waves;
    Timed copies;
    std::size_t done = 0;
    const auto start = std::chrono::steady_clock::now();
    for (int round = 0; round < kRounds && std::chrono::steady_clock::now() - start < kLongest; ++round) {
        for (std::size_t i = 0; i < timed.size(); ++i) {
            const auto& entry = rates.copies[i];
            const auto programs = host::matrix(entry.pattern, entry.run, entry.footprint);
            if (auto ran = timer->time_again(programs, entry.threads, timed[i]); !ran) {
                return Failure{std::move(ran.error())};
            }
            if (tell) {
                tell(static_cast<double>(++done) / static_cast<double>(kRounds * timed.size()));
            }
        }
        auto ran = timer->time_again(host::small_messages(kWaves, 1), threads, waves);
        ran = ran ? timer->time_again(host::small_messages(1, kCopies), 1, copies) : std::move(ran);
        if (!ran) {
            return Failure{std::move(ran.error())};
        }
    }
    rates.yardstick = timer->yardstick();
    for (std::size_t i = 0; i < timed.size(); ++i) {
        rates.copies[i].bytes_per_second =
            static_cast<double>(timed[i].bytes) / timed[i].typical(rates.yardstick).value();
    }
    rates.wave = waves.typical(rates.yardstick) * (1.0 / kWaves);
    rates.copy = copies.typical(rates.yardstick) * (1.0 / (kCopies * host::kRanks));
    return rates;
}

}  // namespace refit::exec
