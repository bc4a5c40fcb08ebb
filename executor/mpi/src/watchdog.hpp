// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace refit::exec {

/// A thread that watches a counter of progress and acts once where it stands still for too long. It calls
/// nothing that may wait for another rank: that is the point of it, since a call that waits for a dead peer
/// may never return.
class Watchdog {
public:
    /// `on_silence` is called from the watching thread, at most once, when `deadline` has gone by without
    /// progress while the dog is on guard.
    Watchdog(std::chrono::milliseconds deadline, std::function<void()> on_silence);
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

    /// Something that was waited for came to be.
    void progress() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
    /// Begins or ends a call that waits for others.
    void guard(bool is_on) noexcept;

private:
    void watch(std::chrono::milliseconds deadline);

    std::function<void()> on_silence_;
    std::atomic<std::uint64_t> count_{0};
    std::atomic<bool> is_on_guard_{false};
    std::mutex mutex_;
    std::condition_variable is_ended_;
    bool end_ = false;
    std::thread thread_;
};

}  // namespace refit::exec
