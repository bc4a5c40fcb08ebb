// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "refit/distribution.hpp"

namespace refit {

/// Elements that one source shard has and one destination shard wants.
struct OverlapCell {
    std::uint32_t source;            ///< Index of the shard in the source distribution.
    std::uint32_t destination;       ///< Index of the shard in the destination distribution.
    std::uint32_t destination_box;   ///< Which of its boxes this lies in.
    std::uint32_t source_box;
    Box box;
};

/// All non-empty overlaps, ordered by destination shard, its box, source shard, its box.
/// Pre: equal shapes.
[[nodiscard]] std::vector<OverlapCell> overlap(const Distribution& source, const Distribution& destination);

/// Whether `inner` is one contiguous run where `outer` is stored row-major. Pre: inner lies inside outer.
[[nodiscard]] bool is_contiguous_in(const Box& inner, const Box& outer);

}  // namespace refit
