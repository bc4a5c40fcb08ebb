// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "refit/distribution.hpp"
#include "refit/layout.hpp"
#include "refit/parameter.hpp"

namespace refit::fsdp {

/// Who holds what of one logical tensor. FSDP cuts each Hugging Face tensor by itself along its dim 0 by
/// torch.chunk's rule, whatever tensor parallelism would do with it; an expert is cut along its own dim 0,
/// which is dim 1 of stacked experts. Pre: `check_train` finds no fault for the class and layout, and the
/// layout is one of FSDP. Source: PyTorch torch/distributed/fsdp/_fully_shard (Shard(0)); VeOmni
/// torch_parallelize.py (experts: Shard(1)).
[[nodiscard]] Distribution distribution(const ParameterClass& parameter, const TrainLayout& layout);

/// Elements of one tensor (of one expert) that each rank contributes to the all-gather that restores it: the
/// first chunk, since shorter ones are padded. Source: PyTorch torch/distributed/tensor/placement_types.py.
[[nodiscard]] std::uint64_t gathered_elements(const ParameterClass& parameter, const TrainLayout& layout);

}  // namespace refit::fsdp
