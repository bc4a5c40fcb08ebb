// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "refit/inventory.hpp"
#include "refit/layout.hpp"
#include "refit/result.hpp"

namespace refit {

/// The layout that `text` means on `gpus` GPUs for this model.
/// Errors: kInfeasible, all at once: sizes that do not multiply out, heads, widths, experts or layers that do not
/// divide. Each carries the nearest layout for which this function finds no fault, in the field "train.layout".
[[nodiscard]] Result<TrainLayout> make_train_layout(const LayoutText& text, std::uint32_t gpus, const Inventory& model);

/// Every kind of projection that `layout` cuts through blocks of 128 x 128, as blockwise FP8 generation may not; one
/// fault each, with a layout on the same GPUs that cuts through none.
/// Source: vLLM quantization/utils/fp8_utils.py.
[[nodiscard]] Faults check_fp8_blocks(const GenerateLayout& layout, const Inventory& model);

/// The same for generation, in the field "generate.layout".
[[nodiscard]] Result<GenerateLayout> make_generate_layout(const LayoutText& text, std::uint32_t gpus,
                                                          const Inventory& model);

}  // namespace refit
