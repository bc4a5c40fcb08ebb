// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "refit/box.hpp"

namespace refit::program {

/// Appends what `box` has beyond `part`, as disjoint boxes. Pre: `part` lies inside `box`.
inline void append_rest(Box box, const Box& part, std::vector<Box>& rest) {
    for (std::size_t axis = 0; axis < box.axes().size(); ++axis) {
        const auto all = box.axes()[axis];
        const auto taken = part.axes()[axis];
        if (all.begin < taken.begin) {
            rest.push_back(box.with(axis, {all.begin, taken.begin}));
        }
        if (taken.end < all.end) {
            rest.push_back(box.with(axis, {taken.end, all.end}));
        }
        box = box.with(axis, taken);
    }
}

/// Calls `use(common)` for what `region` has of the boxes, and takes it away from them.
template <class Use>
void take_from(std::vector<Box>& boxes, const Box& region, Use&& use) {
    std::vector<Box> rest;
    bool is_changed = false;
    for (const auto& box : boxes) {
        const auto common = intersection(box, region);
        if (!common || common->volume() == 0) {
            rest.push_back(box);
            continue;
        }
        use(*common);
        append_rest(box, *common, rest);
        is_changed = true;
    }
    if (is_changed) {
        boxes = std::move(rest);
    }
}

}  // namespace refit::program
