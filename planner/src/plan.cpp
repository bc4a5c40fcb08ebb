// SPDX-License-Identifier: Apache-2.0
#include "refit/plan.hpp"

#include <algorithm>
#include <stdexcept>

namespace refit {

std::uint32_t RelayTable::depth() const {
    // Hops of a message mostly stand side by side, so the depths of one message are all that is kept.
    std::vector<std::uint32_t> depths;
    std::size_t first = 0;
    std::uint32_t deepest = 0;
    for (std::size_t hop = 0; hop < size(); ++hop) {
        if (hop > 0 && message[hop] != message[hop - 1]) {
            depths.clear();
            first = hop;
        }
        std::uint32_t depth = 1;
        for (auto parent = follows[hop]; parent != kNone; parent = follows[parent]) {
            if (parent >= hop) {
                throw std::logic_error{"RelayTable: a hop follows a later one"};
            }
            if (parent >= first) {
                depth += depths[parent - first];
                break;
            }
            ++depth;
        }
        depths.push_back(depth);
        deepest = std::max(deepest, depth);
    }
    return deepest;
}

}  // namespace refit
