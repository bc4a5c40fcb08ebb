// SPDX-License-Identifier: Apache-2.0
#include "watchdog.hpp"

#include <algorithm>
#include <utility>

namespace refit::exec {

Watchdog::Watchdog(std::chrono::milliseconds deadline, std::function<void()> on_silence)
    : on_silence_{std::move(on_silence)}, thread_{[this, deadline] { watch(deadline); }} {}

Watchdog::~Watchdog() {
    {
        const std::lock_guard lock{mutex_};
        end_ = true;
    }
    is_ended_.notify_one();
    thread_.join();
}

void Watchdog::guard(bool is_on) noexcept {
    progress();
    is_on_guard_.store(is_on, std::memory_order_relaxed);
}

void Watchdog::watch(std::chrono::milliseconds deadline) {
    using Clock = std::chrono::steady_clock;
    const auto period = std::clamp<std::chrono::milliseconds>(
        deadline / 20, std::chrono::milliseconds{1}, std::chrono::milliseconds{100});
    std::uint64_t seen = count_.load();
    auto since = Clock::now();
    std::unique_lock lock{mutex_};
    while (!is_ended_.wait_for(lock, period, [this] { return end_; })) {
        const std::uint64_t count = count_.load(std::memory_order_relaxed);
        if (count != seen || !is_on_guard_.load(std::memory_order_relaxed)) {
            seen = count;
            since = Clock::now();
        } else if (Clock::now() - since >= deadline) {
            lock.unlock();
            on_silence_();
            return;
        }
    }
}

}  // namespace refit::exec
