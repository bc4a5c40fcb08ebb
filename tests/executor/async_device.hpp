// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "host_device.hpp"

namespace refit::testing_support {

/// A device of host memory whose streams are threads, as slow as they like: what is not ordered by streams
/// and marks comes in any order. Kernels of NCCL may be made to run one at a time, in the order of their
/// launches, as on a GPU that has room for one.
class AsyncDevice final : public HostDevice {
public:
    AsyncDevice(std::uint64_t seed, bool runs_one_kernel)
        : runs_one_kernel_{runs_one_kernel}, engine_{seed} {}
    ~AsyncDevice() override {
        {
            const std::lock_guard lock{mutex_};
            is_closing_ = true;
        }
        changed_.notify_all();
        for (auto& [index, queue] : queues_) {
            queue.thread.join();
        }
    }
    AsyncDevice(const AsyncDevice&) = delete;
    AsyncDevice& operator=(const AsyncDevice&) = delete;

    Result<bool> is_idle() override {
        const std::lock_guard lock{mutex_};
        const auto found = queues_.find(0);
        return found == queues_.end() || found->second.left == 0;
    }

    std::chrono::microseconds pause_{0};  ///< That what is begun on streams of runs takes at least.

    /// The turn of a kernel that is launched now.
    std::uint64_t take_turn() { return launched_++; }
    /// Waits until it may run.
    void await_turn(std::uint64_t turn) {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return is_closing_ || !runs_one_kernel_ || turn == over_; });
    }
    void end_turn() {
        {
            const std::lock_guard lock{mutex_};
            ++over_;
        }
        changed_.notify_all();
    }

protected:
    void run_on(std::uint32_t stream, std::function<void()> work) override {
        const std::lock_guard lock{mutex_};
        Queue& queue = queues_[stream];
        if (!queue.thread.joinable()) {
            queue.thread = std::thread{[this, &queue] { serve(queue); }};
        }
        const auto pause =
            stream == 0
                ? std::chrono::microseconds{0}
                : std::max(pause_, std::chrono::microseconds{engine_() % 4 == 0 ? engine_() % 60 : 0});
        queue.works.push_back([pause, work = std::move(work)] {
            if (pause.count() > 0) {
                std::this_thread::sleep_for(pause);
            }
            work();
        });
        ++queue.left;
        changed_.notify_all();
    }
    void set_off(std::uint32_t mark, std::uint32_t stream) override {
        std::uint64_t set = 0;
        {
            const std::lock_guard lock{mutex_};
            set = ++marks_[mark].set;
        }
        run_on(stream, [this, mark, set] {
            {
                const std::lock_guard lock{mutex_};
                marks_[mark].passed = set;
            }
            changed_.notify_all();
        });
    }
    void wait_for(std::uint32_t stream, std::uint32_t mark) override {
        std::uint64_t set = 0;
        {
            const std::lock_guard lock{mutex_};
            set = marks_[mark].set;
        }
        run_on(stream, [this, mark, set] {
            std::unique_lock lock{mutex_};
            changed_.wait(lock, [&] { return is_closing_ || marks_[mark].passed >= set; });
        });
    }
    bool has_passed(std::uint32_t mark) override {
        const std::lock_guard lock{mutex_};
        return marks_[mark].passed == marks_[mark].set;
    }
    void drain() override {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return !queues_.contains(0) || queues_[0].left == 0; });
    }

private:
    struct Queue {
        std::deque<std::function<void()>> works;
        std::size_t left = 0;
        std::thread thread;
    };
    struct Passed {
        std::uint64_t set = 0;
        std::uint64_t passed = 0;
    };

    void serve(Queue& queue) {
        std::unique_lock lock{mutex_};
        while (true) {
            changed_.wait(lock, [&] { return is_closing_ || !queue.works.empty(); });
            if (queue.works.empty() || is_closing_) {
                return;
            }
            const auto work = std::move(queue.works.front());
            queue.works.pop_front();
            lock.unlock();
            work();
            lock.lock();
            --queue.left;
            changed_.notify_all();
        }
    }

    const bool runs_one_kernel_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::mt19937_64 engine_;
    std::map<std::uint32_t, Queue> queues_;
    std::map<std::uint32_t, Passed> marks_;
    std::uint64_t launched_ = 0;
    std::uint64_t over_ = 0;
    bool is_closing_ = false;
};

}  // namespace refit::testing_support
