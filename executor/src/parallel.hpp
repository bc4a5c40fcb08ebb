// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace refit::exec {

/// Calls use(i) for each i below `count`, on so many threads; throws what one of them threw.
template <class Use>
void parallel_for(std::uint32_t threads, std::size_t count, Use&& use) {
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex mutex;
    const auto work = [&] {
        try {
            for (auto i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
                use(i);
            }
        } catch (...) {
            const std::lock_guard lock{mutex};
            failure = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    for (std::uint32_t i = 1; i < threads && i < count; ++i) {
        others.emplace_back(work);
    }
    work();
    for (auto& thread : others) {
        thread.join();
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
}

}  // namespace refit::exec
