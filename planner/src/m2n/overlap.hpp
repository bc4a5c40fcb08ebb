// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "refit/m2n.hpp"

namespace refit::m2n {

/// Which source shards meet which destination shards, and in how many bytes.
/// Source: NCCL M2N 0.2, reshard_mesh.cc.
class ShardOverlap {
public:
    /// Pre: equal shapes, which both sides divide; fewer than 2^64 bytes.
    ShardOverlap(const M2nTensor& tensor, const M2nSide& source, const M2nSide& destination);

    /// Source shards that meet the destination shard.
    [[nodiscard]] M2nRange sources_of(std::uint32_t destination) const noexcept;
    /// Destination shards that meet the source shard.
    [[nodiscard]] M2nRange destinations_of(std::uint32_t source) const noexcept;
    /// Pre: they meet.
    [[nodiscard]] M2nPair pair(std::uint32_t source, std::uint32_t destination) const noexcept;
    /// Bytes that a rank of either side holds, the larger of the two.
    [[nodiscard]] std::uint64_t local_bytes() const noexcept;

private:
    [[nodiscard]] bool is_same_axis() const noexcept { return source_.axis == destination_.axis; }
    [[nodiscard]] std::uint64_t bytes() const noexcept;

    std::vector<std::uint64_t> extents_;  ///< Of the whole tensor, the last one in bytes.
    M2nSide source_;
    M2nSide destination_;
};

}  // namespace refit::m2n
