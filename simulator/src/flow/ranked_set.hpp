// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace refit::flow {

/// A set of small numbers that gives back its lowest first. Three layers of bits: a bit of an upper layer
/// says that the word below is not empty. Cost: a few operations for each call, whatever the size, up to some
/// hundred thousand numbers.
class RankedSet {
public:
    explicit RankedSet(std::size_t size)
        : words_(size / 64 + 1), groups_(size / 4096 + 1), tops_(size / 262144 + 1) {}

    void insert(std::uint32_t number) noexcept {
        words_[number >> 6U] |= bit(number);
        groups_[number >> 12U] |= bit(number >> 6U);
        tops_[number >> 18U] |= bit(number >> 12U);
    }

    [[nodiscard]] bool is_empty() const noexcept {
        for (const auto top : tops_) {
            if (top != 0) {
                return false;
            }
        }
        return true;
    }

    /// Pre: not empty.
    [[nodiscard]] std::uint32_t pop_lowest() noexcept {
        std::uint32_t top = 0;
        while (tops_[top] == 0) {
            ++top;
        }
        const auto group = (top << 6U) + lowest(tops_[top]);
        const auto word = (group << 6U) + lowest(groups_[group]);
        const auto number = (word << 6U) + lowest(words_[word]);
        if ((words_[word] &= words_[word] - 1) == 0 && (groups_[group] &= groups_[group] - 1) == 0) {
            tops_[top] &= tops_[top] - 1;
        }
        return number;
    }

    void clear() noexcept {
        while (!is_empty()) {
            (void)pop_lowest();
        }
    }

private:
    [[nodiscard]] static constexpr std::uint64_t bit(std::uint32_t number) noexcept {
        return std::uint64_t{1} << (number & 63U);
    }
    [[nodiscard]] static std::uint32_t lowest(std::uint64_t word) noexcept {
        return static_cast<std::uint32_t>(std::countr_zero(word));
    }

    std::vector<std::uint64_t> words_;
    std::vector<std::uint64_t> groups_;
    std::vector<std::uint64_t> tops_;
};

}  // namespace refit::flow
