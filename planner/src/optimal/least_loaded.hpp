// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace refit {

/// The least loaded of candidates 0, 1, … whose loads only grow, asked for again and again.
/// Cost: an answer is in those that have grown since they were last the least, not in all.
class LeastLoaded {
public:
    void clear() noexcept { heap_.clear(); }
    [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(heap_.size()); }

    /// Adds candidates up to `count`. `load` tells what a candidate has to do.
    template <class Load>
    void grow(std::size_t count, const Load& load) {
        while (heap_.size() < count) {
            const auto candidate = size();
            heap_.emplace_back(load(candidate), candidate);
            std::push_heap(heap_.begin(), heap_.end(), std::greater{});
        }
    }

    /// Of equal ones the first. Pre: there is one.
    template <class Load>
    [[nodiscard]] std::uint32_t least(const Load& load) {
        for (;;) {
            const auto [before, candidate] = heap_.front();
            const auto now = load(candidate);
            if (!(now > before)) {
                return candidate;
            }
            std::pop_heap(heap_.begin(), heap_.end(), std::greater{});
            heap_.back().first = now;
            std::push_heap(heap_.begin(), heap_.end(), std::greater{});
        }
    }

private:
    std::vector<std::pair<double, std::uint32_t>> heap_;
};

}  // namespace refit
