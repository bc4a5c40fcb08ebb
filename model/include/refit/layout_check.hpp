// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "refit/held_weights.hpp"
#include "refit/inventory.hpp"
#include "refit/layout.hpp"
#include "refit/result.hpp"

namespace refit {

/// The layout that `text` means on `gpus` GPUs for this model.
/// Errors: kInfeasible, all at once: sizes that do not multiply out, heads, widths, experts or layers that do
/// not divide; or weights that the GPU memory, where it is given, cannot hold. Each carries the nearest
/// layout for which this function finds no fault, in the field "train.layout"; where only more GPUs help, one
/// more fault carries their number in "train.gpus". Pre: the text's chunks are a multiple of its pp, and have
/// the model's layers.
[[nodiscard]] Result<TrainLayout> make_train_layout(const LayoutText& text,
                                                    std::uint32_t gpus,
                                                    const Inventory& model,
                                                    const std::optional<GpuMemory>& memory = std::nullopt);

/// The same for generation, in the fields "generate.layout" and "generate.gpus".
[[nodiscard]] Result<GenerateLayout> make_generate_layout(
    const LayoutText& text,
    std::uint32_t gpus,
    const Inventory& model,
    const std::optional<GpuMemory>& memory = std::nullopt);

/// A layout, and the GPUs that it takes.
struct FoundLayout {
    std::string layout;
    std::uint32_t gpus = 0;
    bool operator==(const FoundLayout&) const = default;
};

/// The nearest layout that `make_train_layout` takes, with experts cut by no tensor parallelism. Where memory
/// allows none on `gpus` GPUs, on twice as many, and so on.
[[nodiscard]] std::optional<FoundLayout> nearest_train_layout(const LayoutText& text,
                                                              std::uint32_t gpus,
                                                              const Inventory& model,
                                                              const std::optional<GpuMemory>& memory);

/// The same for `make_generate_layout`, of the layouts that `accepts` takes too.
[[nodiscard]] std::optional<FoundLayout> nearest_generate_layout(
    const LayoutText& text,
    std::uint32_t gpus,
    const Inventory& model,
    const std::optional<GpuMemory>& memory,
    const std::function<bool(const GenerateLayout&)>& accepts);

/// Whether `make_train_layout` finds no fault. Cost: it searches for no suggestion.
[[nodiscard]] bool is_possible(const LayoutText& text,
                               std::uint32_t gpus,
                               const Inventory& model,
                               const std::optional<GpuMemory>& memory);

/// Every kind of projection that `layout` cuts through blocks of 128 x 128, as blockwise FP8 generation may
/// not; one fault each, with a layout that cuts through none. Source: vLLM quantization/utils/fp8_utils.py.
[[nodiscard]] Faults check_fp8_blocks(const GenerateLayout& layout,
                                      const Inventory& model,
                                      const std::optional<GpuMemory>& memory = std::nullopt);

}  // namespace refit
