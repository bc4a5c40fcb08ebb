// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "refit/inventory.hpp"
#include "refit/parameter.hpp"

namespace refit {

/// Rows, and columns, of a weight that share one scale in blockwise FP8.
/// Source: `weight_block_size` of the public FP8 checkpoints of DeepSeek-V3 and Qwen3.
constexpr std::uint64_t kFp8Block = 128;

/// Blocks that `extent` rows or columns take; the last one may be short.
[[nodiscard]] constexpr std::uint64_t fp8_blocks(std::uint64_t extent) noexcept {
    return (extent + kFp8Block - 1) / kFp8Block;
}

/// The scales of a projection: "….weight_scale_inv", one FP32 number for each of its blocks, cut as the
/// projection is. Of routed experts, one tensor each. Pre: the projection is one, and has two axes. Source:
/// Megatron-Bridge export of `fp8_param`; vLLM quantization/fp8.py.
[[nodiscard]] ParameterClass scales_of(const ParameterClass& projection);

/// The classes as trainers and generators keep them where what is BF16 in the model is kept in `dtype`. In
/// FP8 only projections change: each gives way to its FP8 values and then its scales. The rest stays as it
/// is.
[[nodiscard]] std::vector<ParameterClass> kept_in(std::vector<ParameterClass> classes, Dtype dtype);

/// Why no trainer can keep the model's projections in blockwise FP8, whatever its layout, or nothing: the
/// tensors that such training quantises are not known, or blocks of a fused weight would mix two tensors of
/// the checkpoint. Source: Megatron-Core stores q, k, v by KV group, and gate above up, each as one matrix
/// that is quantised whole.
[[nodiscard]] std::optional<std::string> why_not_in_fp8_blocks(const Inventory& model);

}  // namespace refit
