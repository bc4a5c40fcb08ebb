// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace refit::gui {

/// A thread that runs one job at a time; the latest one that was posted wins.
///
/// A job that waits is replaced by a later one; a job that runs is told that it is stale, and should end early. What it
/// hands back is its own matter: it asks `is_stale` before. The destructor ends the thread after the job that runs.
class Worker {
public:
    /// Whether a later job has been posted, or the worker ends. May be called on any thread, also after the job.
    using IsStale = std::function<bool()>;
    using Job = std::function<void(const IsStale& is_stale)>;

    Worker();
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    Worker(Worker&&) = delete;
    Worker& operator=(Worker&&) = delete;

    /// May be called on any thread.
    void post(Job job);
    /// Drops a job that waits, and makes the one that runs stale.
    void cancel();
    /// Waits until no job runs or waits.
    void finish();

private:
    void run();

    std::mutex mutex_;
    std::condition_variable changed_;
    Job next_;
    bool is_busy_ = false;
    bool ends_ = false;
    std::atomic<std::uint64_t> posted_{0};
    std::thread thread_;
};

}  // namespace refit::gui
