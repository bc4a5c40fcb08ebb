// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "refit/held_weights.hpp"
#include "refit/inventory.hpp"
#include "refit/layout.hpp"
#include "refit/result.hpp"

namespace refit {

/// What tensor parallelism must divide, once for each kind of unit.
struct DivisibleUnits {
    std::string name;
    std::string example;  ///< A tensor that has them.
    std::uint64_t count;
    bool is_key_value;
    bool is_expert;
};

/// What layouts may cut only between FP8 blocks: a whole projection, or a segment of one.
struct CutExtent {
    std::string name;     ///< Of the kind of unit.
    std::string example;  ///< A tensor that has it.
    std::uint64_t elements;
    std::uint64_t most_parts;  ///< More ranks than these hold parts alike; 0: no such limit.
    bool is_expert;
};

/// All that a layout has to respect, gathered once: the search for a suggestion asks thousands of times.
struct ModelLimits {
    std::uint32_t layers = 0;
    std::uint32_t experts = 0;
    std::uint64_t vocabulary_rows = 0;
    std::uint64_t key_value_heads = 0;
    std::uint64_t fused_rows = 0;  ///< Of the trainers' qkv weight; 0 without one.
    std::vector<DivisibleUnits> units;
    std::vector<CutExtent> cuts;
    std::vector<ParameterClass> payload;  ///< In the dtype that it is stored in.
    std::optional<GpuMemory> memory;      ///< Absent: of any size, and nothing is kept in FP8.

    ModelLimits(const Inventory& model, std::optional<GpuMemory> gpu_memory);

    [[nodiscard]] bool is_in_fp8() const noexcept { return memory && memory->dtype == Dtype::kFp8; }

private:
    void add(const ParameterClass& entry);
    void add_cuts(const ParameterClass& entry);
};

/// Every kind of unit of which generators with this layout would hold broken FP8 blocks, without suggestions.
[[nodiscard]] Faults broken_fp8_blocks(const GenerateLayout& layout, const ModelLimits& model);

/// The layout that `text` means, and everything that is wrong with it, without suggestions.
[[nodiscard]] std::pair<TrainLayout, Faults> examine_train(const LayoutText& text,
                                                           std::uint32_t gpus,
                                                           const ModelLimits& model);
[[nodiscard]] std::pair<GenerateLayout, Faults> examine_generate(const LayoutText& text,
                                                                 std::uint32_t gpus,
                                                                 const ModelLimits& model);

}  // namespace refit
