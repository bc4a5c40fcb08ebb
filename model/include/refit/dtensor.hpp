// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "refit/local_tensor.hpp"
#include "refit/result.hpp"

namespace refit {

/// What one axis of a PyTorch device mesh does with a tensor.
struct DtensorPlacement {
    enum class Kind : std::uint8_t { kReplicate, kShard, kStridedShard };
    Kind kind = Kind::kReplicate;
    std::size_t dim = 0;
    std::uint64_t split_factor = 1;  ///< For kStridedShard: chunks that are each cut over the axis.
    bool operator==(const DtensorPlacement&) const = default;
};

/// Reads "replicate", "shard(1)" or "strided_shard(0,split_factor=4)". Errors: kInvalidInput.
[[nodiscard]] Result<DtensorPlacement> parse_placement(std::string_view text);

/// The local tensor of each rank in row-major mesh order. Axes apply left to right on what is left, each by
/// torch.chunk's rule: chunks of ceil(size / n), later ones short, then empty.
/// Errors: kInvalidInput where placements and mesh differ in number, or a dim does not exist.
/// Source: PyTorch torch/distributed/tensor/placement_types.py.
[[nodiscard]] Result<std::vector<LocalTensor>> dtensor_map(std::span<const std::uint64_t> shape,
                                                           std::span<const std::uint64_t> mesh,
                                                           std::span<const DtensorPlacement> placements);

}  // namespace refit
