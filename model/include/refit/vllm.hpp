// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "refit/distribution.hpp"
#include "refit/layout.hpp"
#include "refit/parameter.hpp"

namespace refit::vllm {

/// Pipeline stage of an engine that runs `layer`; the remainder of an uneven split goes to the stages before the last.
/// Source: vLLM distributed/utils.py.
[[nodiscard]] std::uint32_t stage_of_layer(std::uint32_t layer, std::uint32_t layers, const GenerateLayout& layout);

/// Who of all generators holds what of one logical tensor that belongs to pipeline stage `stage` of each engine.
/// Pre: `check_generate` finds no fault for the class and layout.
/// Source: vLLM linear.py, vocab_parallel_embedding.py (padding to 64), fused_moe/layer.py
/// (expert placement).
[[nodiscard]] Distribution distribution(const ParameterClass& parameter, const GenerateLayout& layout,
                                        std::uint32_t stage);

/// Elements of all tensors of one layer of the class that the fullest rank stores, padding of the vocabulary included.
/// Pre: as `distribution`.
[[nodiscard]] std::uint64_t most_stored_elements(const ParameterClass& parameter, const GenerateLayout& layout);

}  // namespace refit::vllm
