// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace refit::exec::host {
namespace {

using Clock = std::chrono::steady_clock;
using program::kNone;

/// Which task an injected fault waits for.
struct Trap {
    Injection injection;
    std::size_t task = 0;  ///< The number of tasks: none, so it strikes at the end.
};

class HostRun {
public:
    HostRun(const Work& work, const std::vector<RankStorage>& storage, const Job& job, std::uint32_t threads)
        : work_{work},
          storage_{storage},
          job_{job},
          threads_{threads},
          wave_end_(work.stages.size()),
          at_(threads) {
        std::ranges::for_each(at_, [](auto& at) { at.store(kIdle, std::memory_order_relaxed); });
        for (const auto& injection : job.injections) {
            traps_.push_back({injection, trapped_task(injection)});
        }
    }

    Result<Iteration> run() {
        std::vector<std::thread> workers;
        for (std::uint32_t i = 0; i < threads_; ++i) {
            workers.emplace_back([this, i] { work_on(i); });
        }
        {
            std::unique_lock lock{mutex_};
            changed_.wait(lock, [&] { return ready_ == threads_; });
            start_ = Clock::now();
            has_begun_.store(true, std::memory_order_release);
            const bool is_over =
                changed_.wait_until(lock, start_ + job_.deadline, [&] { return finished_ == threads_; });
            if (!is_over && !fault_) {
                fault_ = late_fault();
            }
        }
        is_aborted_.store(true, std::memory_order_relaxed);
        for (auto& worker : workers) {
            worker.join();
        }
        for (const auto& trap : traps_) {
            if (!fault_ && trap.task == work_.tasks.size()) {
                spring(trap.injection, static_cast<std::uint32_t>(work_.stages.size()));
            }
        }
        return fault_ ? Result<Iteration>{fail(Faults{*fault_})} : Result<Iteration>{times()};
    }

    /// Whom the fault names.
    [[nodiscard]] std::vector<std::uint32_t> failed() const {
        return failed_ == kNone ? std::vector<std::uint32_t>{} : std::vector{failed_};
    }

private:
    [[nodiscard]] std::size_t trapped_task(const Injection& injection) const {
        const auto is_in = [&](const Task& task) {
            return task.wave >= injection.wave &&
                   (task.giver == injection.rank ||
                    std::any_of(work_.copies.begin() + task.first,
                                work_.copies.begin() + task.last,
                                [&](const Copy& copy) { return copy.taker == injection.rank; }));
        };
        return static_cast<std::size_t>(std::ranges::find_if(work_.tasks, is_in) - work_.tasks.begin());
    }

    void work_on(std::uint32_t thread) {
        {
            const std::lock_guard lock{mutex_};
            ++ready_;
        }
        changed_.notify_all();
        while (!has_begun_.load(std::memory_order_acquire)) {
            std::this_thread::yield();
        }
        for (auto i = next_.fetch_add(1); i < work_.tasks.size() && wait_for_wave(i);
             i = next_.fetch_add(1)) {
            const auto& task = work_.tasks[i];
            at_[thread].store((std::uint64_t{task.wave} << 32U) | task.giver, std::memory_order_relaxed);
            if (!do_task(i)) {
                break;
            }
            if (job_.streams) {
                finish_streams();
            }
            at_[thread].store(kIdle, std::memory_order_relaxed);
            if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == work_.first_task[task.wave + 1]) {
                wave_end_[task.wave] = Clock::now();
            }
        }
        const std::lock_guard lock{mutex_};
        ++finished_;
        changed_.notify_all();
    }

    /// False where the run was given up.
    bool wait_for_wave(std::size_t task) {
        const auto before = work_.first_task[work_.tasks[task].wave];
        for (std::uint32_t turns = 0; done_.load(std::memory_order_acquire) < before; ++turns) {
            if (is_aborted_.load(std::memory_order_relaxed)) {
                return false;
            }
            if (turns < kPatience) {
                std::this_thread::yield();
            } else {
                std::this_thread::sleep_for(std::chrono::microseconds{50});
            }
        }
        return !is_aborted_.load(std::memory_order_relaxed);
    }

    bool do_task(std::size_t index) {
        const auto& task = work_.tasks[index];
        const auto begin = Clock::now();
        for (auto i = task.first; i < task.last; ++i) {
            const auto& copy = work_.copies[i];
            run_copy(copy.shape,
                     storage_[task.giver].base(copy.from),
                     storage_[copy.taker].base(copy.to),
                     job_.streams);
        }
        for (const auto& trap : traps_) {
            if (trap.task == index && !spring(trap.injection, task.wave)) {
                return false;
            }
            if (trap.injection.kind == InjectionKind::kSlows && index >= trap.task &&
                trap.injection.rank == task.giver) {
                if (!sleep_until(Clock::now() + 9 * (Clock::now() - begin))) {
                    return false;
                }
            }
            if (trap.injection.kind == InjectionKind::kCorrupts && trap.injection.wave == task.wave &&
                trap.injection.rank == task.giver) {
                const auto& copy = work_.copies[task.first];
                storage_[copy.taker].base(copy.to)[copy.shape.destination] ^= std::byte{1};
            }
        }
        return true;
    }

    bool sleep_until(Clock::time_point end) {
        while (Clock::now() < end) {
            if (is_aborted_.load(std::memory_order_relaxed)) {
                return false;
            }
            std::this_thread::sleep_for(
                std::min<Clock::duration>(end - Clock::now(), std::chrono::milliseconds{1}));
        }
        return true;
    }

    /// What happens when a rank comes to its fault; false where that ends the run.
    bool spring(const Injection& injection, std::uint32_t wave) {
        if (injection.kind == InjectionKind::kDies) {
            const std::lock_guard lock{mutex_};
            if (!fault_) {
                failed_ = injection.rank;
                fault_ = Fault{ErrorCode::kInfeasible,
                               "rank-died",
                               "rank " + std::to_string(injection.rank) + " died " + place(wave),
                               {}};
            }
            is_aborted_.store(true, std::memory_order_relaxed);
            return false;
        }
        if (injection.kind == InjectionKind::kStalls) {
            stalled_.store(injection.rank, std::memory_order_relaxed);
            return sleep_until(Clock::time_point::max());
        }
        return true;
    }

    [[nodiscard]] std::string place(std::uint32_t wave) const {
        const auto waves = std::to_string(work_.stages.size());
        return wave < work_.stages.size() ? "in wave " + std::to_string(wave + 1) + " of " + waves +
                                                ", of stage " + std::to_string(work_.stages[wave] + 1)
                                          : "after wave " + waves + " of " + waves;
    }

    /// Names whoever holds the others up: a rank whose bytes are still being copied.
    [[nodiscard]] Fault late_fault() {
        auto rank = stalled_.load(std::memory_order_relaxed);
        std::uint32_t wave = 0;
        for (const auto& at : at_) {
            const auto now = at.load(std::memory_order_relaxed);
            if (now != kIdle) {
                wave = static_cast<std::uint32_t>(now >> 32U);
                rank = rank == kNone ? static_cast<std::uint32_t>(now & 0xffffffffU) : rank;
            }
        }
        failed_ = rank;
        char seconds[32];
        std::snprintf(
            seconds, sizeof(seconds), "%.3g s", std::chrono::duration<double>(job_.deadline).count());
        return {ErrorCode::kInfeasible,
                "rank-stalled",
                rank == kNone
                    ? std::string{"no rank was at work"} + " when the deadline of " + seconds + " passed"
                    : "rank " + std::to_string(rank) + " is still " + place(wave) +
                          ", after the deadline of " + seconds,
                {}};
    }

    [[nodiscard]] Iteration times() const {
        Iteration iteration;
        const auto stages = work_.stages.empty() ? 0 : *std::ranges::max_element(work_.stages) + 1;
        std::vector<double> seconds;  // By wave.
        std::vector<double> ends;
        auto before = start_;
        for (std::size_t wave = 0; wave < wave_end_.size(); ++wave) {
            const auto end = work_.first_task[wave] == work_.first_task[wave + 1] ? before : wave_end_[wave];
            seconds.push_back(std::chrono::duration<double>(end - before).count());
            ends.push_back(std::chrono::duration<double>(end - start_).count());
            before = end;
        }
        iteration.seconds = Seconds{ends.empty() ? 0.0 : ends.back()};
        for (std::uint32_t rank = 0; rank < work_.takes_part.size(); ++rank) {
            RankTimes times{rank, Seconds{}, std::vector<Seconds>(stages)};
            for (std::size_t wave = 0; wave < seconds.size(); ++wave) {
                if (work_.takes_part[rank][wave]) {
                    times.stages[work_.stages[wave]] += Seconds{seconds[wave]};
                    times.seconds = Seconds{ends[wave]};
                }
            }
            iteration.ranks.push_back(std::move(times));
        }
        return iteration;
    }

    static constexpr std::uint32_t kPatience = 400;  ///< Turns of waiting before a thread sleeps.
    static constexpr std::uint64_t kIdle = ~std::uint64_t{0};

    const Work& work_;
    const std::vector<RankStorage>& storage_;
    const Job& job_;
    std::uint32_t threads_;
    std::vector<Trap> traps_;
    Clock::time_point start_;
    std::vector<Clock::time_point> wave_end_;
    std::atomic<std::size_t> next_{0};
    std::atomic<std::size_t> done_{0};
    std::atomic<bool> has_begun_{false};
    std::atomic<bool> is_aborted_{false};
    std::atomic<std::uint32_t> stalled_{kNone};
    std::vector<std::atomic<std::uint64_t>> at_;  ///< By thread: wave and giver, or idle.
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint32_t ready_ = 0;
    std::uint32_t finished_ = 0;
    std::optional<Fault> fault_;
    std::uint32_t failed_ = kNone;  ///< Whom it names.
};

}  // namespace

Result<Iteration> run_work(const Work& work,
                           const std::vector<RankStorage>& storage,
                           const Job& job,
                           std::uint32_t threads,
                           std::vector<std::uint32_t>& failed) {
    HostRun run{work, storage, job, threads};
    auto iteration = run.run();
    failed = run.failed();
    return iteration;
}

}  // namespace refit::exec::host
