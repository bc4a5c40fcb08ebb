// SPDX-License-Identifier: Apache-2.0
#include "refit/plan.hpp"

#include <algorithm>

namespace refit {

std::uint32_t RelayTable::depth() const {
    std::vector<std::uint32_t> depths;
    depths.reserve(size());
    std::uint32_t deepest = 0;
    for (const auto parent : follows) {
        depths.push_back(parent == kNone ? 1 : depths.at(parent) + 1);
        deepest = std::max(deepest, depths.back());
    }
    return deepest;
}

}  // namespace refit
