// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "refit/dtensor.hpp"
#include "refit/strong_id.hpp"

namespace refit {

/// Consecutive ranks of a communicator in a grid; the last axis varies fastest.
struct M2nMesh {
    std::vector<std::uint32_t> axes;
    RankId first_rank;
    bool operator==(const M2nMesh&) const = default;

    /// Product of the axes. Errors: 2^64 and more throws std::overflow_error.
    [[nodiscard]] std::uint64_t ranks() const;
};

/// One end of an M2N call: a tensor, dense and row-major, and where its parts lie.
/// Shape: `shape` is that of the whole tensor; one placement for each axis of the mesh.
struct M2nTensor {
    std::vector<std::uint64_t> shape;
    std::uint64_t element_bytes = 1;  ///< All that M2N looks at of a dtype.
    M2nMesh mesh;
    std::vector<DtensorPlacement> placements;
    bool operator==(const M2nTensor&) const = default;
};

/// A call: the same logical tensor on its trainers and on its generators.
struct M2nCall {
    M2nTensor source;
    M2nTensor destination;
    std::uint64_t communicator_ranks = 0;  ///< 0: up to the last rank of either mesh.
    bool operator==(const M2nCall&) const = default;

    /// Ranks of the communicator.
    [[nodiscard]] std::uint64_t ranks() const;
};

/// One end as M2N normalises it: equal parts of one tensor axis, each held by as many ranks.
/// Source: NCCL M2N 0.2, reshard_call_setup.cc and reshard_mesh.cc.
struct M2nSide {
    RankId first_rank;
    std::uint32_t shards = 1;
    std::uint32_t replicas = 1;
    std::size_t axis = 0;          ///< Of the tensor, which is cut.
    bool has_shards_inner = true;  ///< Neighbouring ranks hold different shards; else replicas of one.
    bool operator==(const M2nSide&) const = default;

    [[nodiscard]] std::uint32_t ranks() const noexcept { return shards * replicas; }
    /// Whether every rank holds the whole tensor.
    [[nodiscard]] bool is_whole() const noexcept { return shards == 1; }
    /// Pre: shard < shards, replica < replicas.
    [[nodiscard]] RankId rank_of(std::uint32_t shard, std::uint32_t replica) const noexcept {
        return RankId{first_rank.index() +
                      (has_shards_inner ? replica * shards + shard : shard * replicas + replica)};
    }
};

/// Pre: no fault and no refusal of the call (m2n_limits.hpp) speaks of the tensor.
[[nodiscard]] M2nSide normalised(const M2nTensor& tensor);

}  // namespace refit
