// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace refit::exec {

/// Sees to it that a process ends where its job cannot go on, and that the job then leaves no shared memory
/// behind.
class JobGuard {
public:
    /// `describe` is called from another thread, and says what the rank waits for.
    JobGuard(std::uint32_t rank, std::chrono::milliseconds deadline, std::function<std::string()> describe);
    ~JobGuard();
    JobGuard(const JobGuard&) = delete;
    JobGuard& operator=(const JobGuard&) = delete;

    /// The process waits for others from here until `progress` or `rest` is not called for too long.
    void watch() noexcept;
    void progress() noexcept;
    void rest() noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace refit::exec
