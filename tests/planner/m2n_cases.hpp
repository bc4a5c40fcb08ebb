// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "refit/m2n_tensor.hpp"

namespace refit::m2n_cases {

using Shape = std::vector<std::uint64_t>;

/// A mesh and what its axes do; the tensor is added by `call`.
struct Side {
    std::vector<std::uint32_t> axes;
    std::vector<DtensorPlacement> placements;
    std::uint32_t first_rank = 0;
};

inline DtensorPlacement replicate() {
    return {};
}
inline DtensorPlacement shard(std::size_t dim) {
    return {DtensorPlacement::Kind::kShard, dim, 1};
}

/// Replicas, each of `shards` neighbouring ranks.
inline Side blocks(std::uint32_t replicas, std::uint32_t shards, std::size_t dim, std::uint32_t first_rank) {
    return {{replicas, shards}, {replicate(), shard(dim)}, first_rank};
}

/// Shards, each held by `replicas` neighbouring ranks.
inline Side strided(std::uint32_t shards, std::uint32_t replicas, std::size_t dim, std::uint32_t first_rank) {
    return {{shards, replicas}, {shard(dim), replicate()}, first_rank};
}

inline M2nCall call(Shape shape, std::uint64_t element_bytes, const Side& source, const Side& destination) {
    const auto tensor = [&](const Side& side) {
        return M2nTensor{shape, element_bytes, {side.axes, RankId{side.first_rank}}, side.placements};
    };
    return {tensor(source), tensor(destination), 0};
}

}  // namespace refit::m2n_cases
