// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace refit::gui {

/// Values that can be gone back to and forth. Invariant: there is a present one.
template <class T>
class History {
public:
    explicit History(T first) : entries_{{std::move(first), {}}} {}

    [[nodiscard]] const T& present() const noexcept { return entries_[at_].value; }
    [[nodiscard]] bool can_undo() const noexcept { return at_ > 0; }
    [[nodiscard]] bool can_redo() const noexcept { return at_ + 1 < entries_.size(); }

    /// A new present; what was undone is gone. Steps in a row with the same key that is not empty are one step:
    /// the moves of one slider.
    void push(T value, const std::string& key = {}) {
        if (value == present()) {
            return;
        }
        entries_.resize(at_ + 1);
        if (!key.empty() && entries_.back().key == key && at_ > 0) {
            entries_.back().value = std::move(value);
            return;
        }
        entries_.push_back({std::move(value), key});
        ++at_;
    }
    /// Ends a row of steps that are one.
    void seal() { entries_[at_].key.clear(); }
    /// Pre: can_undo().
    void undo() noexcept { --at_; }
    /// Pre: can_redo().
    void redo() noexcept { ++at_; }

private:
    struct Entry {
        T value;
        std::string key;
    };
    std::vector<Entry> entries_;
    std::size_t at_ = 0;
};

}  // namespace refit::gui
