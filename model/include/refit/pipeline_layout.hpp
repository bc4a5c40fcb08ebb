// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "refit/result.hpp"

namespace refit {

/// The decoder layers of each chunk of a pipeline, in the model's order, as Megatron's
/// `pipeline_model_parallel_layout` writes them: "Ettt|(tt|)*29m|L", or a list of lists of embedding,
/// decoder, mtp and loss. Chunk c lies on stage c mod `stages`; a chunk may have none. Errors: kInvalidInput
/// where it cannot be read; kInfeasible, all at once, where the number of chunks is no multiple of `stages`,
/// the layers are not `layers`, or embedding, loss and MTP stand elsewhere than Megatron takes them. Each
/// carries the nearest string that fits, in the field "train.pipeline.layout"; an empty one, which is to have no string,
/// where that would be too long.
/// Source: Megatron-Core transformer/pipeline_parallel_layer_layout.py.
[[nodiscard]] Result<std::vector<std::uint32_t>> read_pipeline_layout(std::string_view text,
                                                                      std::uint32_t stages,
                                                                      std::uint32_t layers);

/// The string for these chunks, equal neighbours in brackets: "Et*3|(t*4|)*14t*2L".
/// Pre: one chunk or more. `mtp_layers` stand in the last chunk.
[[nodiscard]] std::string pipeline_layout_text(std::span<const std::uint32_t> chunk_layers,
                                               std::uint32_t mtp_layers = 0);

}  // namespace refit
