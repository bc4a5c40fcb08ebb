// SPDX-License-Identifier: Apache-2.0
#include "refit/overlap.hpp"

#include <algorithm>
#include <stdexcept>

namespace refit {

std::vector<OverlapCell> overlap(const Distribution& source, const Distribution& destination) {
    if (!std::ranges::equal(source.shape(), destination.shape())) {
        throw std::logic_error{"overlap: the distributions have different shapes"};
    }
    std::vector<OverlapCell> cells;
    for (std::uint32_t d = 0; d < destination.shards().size(); ++d) {
        const auto& wanted = destination.shards()[d].boxes;
        for (std::uint32_t db = 0; db < wanted.size(); ++db) {
            for (std::uint32_t s = 0; s < source.shards().size(); ++s) {
                const auto& held = source.shards()[s].boxes;
                for (std::uint32_t sb = 0; sb < held.size(); ++sb) {
                    if (const auto common = intersection(held[sb], wanted[db])) {
                        cells.push_back({s, d, db, sb, *common});
                    }
                }
            }
        }
    }
    return cells;
}

bool is_contiguous_in(const Box& inner, const Box& outer) {
    const auto axes = inner.axes();
    std::size_t last_cut = axes.size();
    for (std::size_t axis = axes.size(); axis-- > 0;) {
        if (axes[axis] != outer.axes()[axis]) {
            last_cut = axis;
            break;
        }
    }
    if (last_cut == axes.size()) {
        return true;
    }
    return std::all_of(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(last_cut), [](const Interval& interval) {
        return interval.length() == 1;
    });
}

}  // namespace refit
