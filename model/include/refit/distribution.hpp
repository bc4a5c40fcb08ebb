// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "refit/box.hpp"

namespace refit {

/// The same part of a tensor, held by one rank or by several (replicas).
/// `members` are indices within the side's own numbering: of a pipeline stage for trainers, of all generators else.
struct Shard {
    std::vector<Box> boxes;  ///< Disjoint.
    std::vector<std::uint32_t> members;  ///< Ascending.

    [[nodiscard]] std::uint64_t elements() const noexcept;
};

/// Which rank holds which boxes of one logical tensor on one side. Routed experts of a layer are one logical
/// tensor with the expert as its first axis, as NeMo RL groups them.
///
/// Invariant: boxes of different shards are disjoint; no rank is in two shards.
class Distribution {
public:
    /// Pre: the invariant (checked by tests on element indices, not here).
    Distribution(std::vector<std::uint64_t> shape, std::vector<Shard> shards);

    [[nodiscard]] std::span<const std::uint64_t> shape() const noexcept { return shape_; }
    [[nodiscard]] std::span<const Shard> shards() const noexcept { return shards_; }

private:
    std::vector<std::uint64_t> shape_;
    std::vector<Shard> shards_;
};

}  // namespace refit
