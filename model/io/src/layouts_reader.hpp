// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "draft_reader.hpp"
#include "refit/held_weights.hpp"
#include "refit/inventory.hpp"
#include "refit/layout.hpp"

namespace refit::io {

/// The trainers' layout with its pipeline, checked against the model and the memory of the GPUs where these
/// are known.
[[nodiscard]] std::optional<TrainLayout> read_train_layout(DraftReader& reader,
                                                           const std::optional<Inventory>& model,
                                                           const std::optional<GpuMemory>& memory);

/// The same for generation. Where it is asked for `is_fp8`, it may cut through no FP8 block either; `dtype`
/// is what to offer where every layout does.
[[nodiscard]] std::optional<GenerateLayout> read_generate_layout(DraftReader& reader,
                                                                 const std::optional<Inventory>& model,
                                                                 const std::optional<GpuMemory>& memory,
                                                                 bool is_fp8,
                                                                 Dtype dtype);

}  // namespace refit::io
