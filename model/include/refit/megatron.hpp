// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "refit/distribution.hpp"
#include "refit/layout.hpp"
#include "refit/parameter.hpp"

namespace refit::megatron {

/// Who of a pipeline stage holds what of one logical tensor; members are numbered within the stage.
/// Pre: `check_train` finds no fault for the class and layout.
/// Source: Megatron-Core tensor_parallel/layers.py (column, row), attention.py (grouped qkv rows),
/// moe/moe_layer.py (contiguous experts).
[[nodiscard]] Distribution distribution(const ParameterClass& parameter, const TrainLayout& layout);

/// Elements of one tensor in the local shard of the tensor-parallel rank `coordinate`, padding of the vocabulary
/// included: what the export's pipeline broadcast and all-gathers carry.
/// Source: Megatron-LM vocab_utils.py: the vocabulary is padded to a multiple of 128·TP.
[[nodiscard]] std::uint64_t stored_elements(const ParameterClass& parameter, const TrainLayout& layout,
                                            std::uint32_t coordinate);

}  // namespace refit::megatron
