// SPDX-License-Identifier: Apache-2.0
#include "refit/gui/worker.hpp"

#include <utility>

namespace refit::gui {

Worker::Worker() : thread_{[this] { run(); }} {}

Worker::~Worker() {
    {
        const std::lock_guard lock{mutex_};
        ends_ = true;
        next_ = nullptr;
        ++posted_;
    }
    changed_.notify_all();
    thread_.join();
}

void Worker::post(Job job) {
    {
        const std::lock_guard lock{mutex_};
        next_ = std::move(job);
        ++posted_;
    }
    changed_.notify_all();
}

void Worker::cancel() {
    const std::lock_guard lock{mutex_};
    next_ = nullptr;
    ++posted_;
}

void Worker::finish() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return ends_ || (!is_busy_ && !next_); });
}

void Worker::run() {
    std::unique_lock lock{mutex_};
    while (true) {
        changed_.wait(lock, [this] { return ends_ || next_; });
        if (ends_) {
            return;
        }
        const auto job = std::exchange(next_, nullptr);
        const auto number = posted_.load();
        is_busy_ = true;
        lock.unlock();
        job([this, number] { return posted_.load() != number; });
        lock.lock();
        is_busy_ = false;
        changed_.notify_all();
    }
}

}  // namespace refit::gui
