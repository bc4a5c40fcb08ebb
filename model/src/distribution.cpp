// SPDX-License-Identifier: Apache-2.0
#include "refit/distribution.hpp"

#include <utility>

namespace refit {

std::uint64_t Shard::elements() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& box : boxes) {
        sum += box.volume();
    }
    return sum;
}

Distribution::Distribution(std::vector<std::uint64_t> shape, std::vector<Shard> shards)
    : shape_{std::move(shape)}, shards_{std::move(shards)} {}

}  // namespace refit
