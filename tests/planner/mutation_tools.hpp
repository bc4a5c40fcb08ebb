// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan_mutants.hpp"

namespace refit::testing_support {

/// Any element, or nullptr.
template <class T>
T* any_of(std::vector<T>& values, Dice& dice) {
    return values.empty() ? nullptr : &values[dice.index(values.size())];
}

/// Any element of `values` for which `fits` holds, or nullptr.
template <class T, class Fits>
T* any_that(std::vector<T>& values, Dice& dice, Fits fits) {
    std::vector<T*> found;
    for (auto& value : values) {
        if (fits(value)) {
            found.push_back(&value);
        }
    }
    return found.empty() ? nullptr : found[dice.index(found.size())];
}

template <class T>
void erase_at(std::vector<T>& values, std::size_t index) {
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(index));
}

/// Moves one bound of one axis by one, inside the tensor, so that something is left.
inline bool change_box(Box& box, std::span<const std::uint64_t> shape, Dice& dice) {
    const auto axis = dice.index(shape.size());
    auto rows = box.axes()[axis];
    switch (dice.index(4)) {
        case 0:
            rows = {rows.begin + 1, rows.end};
            break;
        case 1:
            rows = {rows.begin, rows.end - 1};
            break;
        case 2:
            rows = {rows.begin, rows.end + 1};
            break;
        default:
            rows = {rows.begin + 1, rows.end + 1};
    }
    if (rows.begin >= rows.end || rows.end > shape[axis]) {
        return false;
    }
    box = box.with(axis, rows);
    return true;
}

inline const WorkloadClass& class_of(const RandomRefit& refit, std::uint32_t index) {
    return refit.workload.classes()[index];
}

/// What mutations() consists of.
[[nodiscard]] std::span<const Mutation> transfer_mutations();
[[nodiscard]] std::span<const Mutation> collective_mutations();
[[nodiscard]] std::span<const Mutation> relay_mutations();

}  // namespace refit::testing_support
