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

/// All that a layout has to respect, gathered once: the search for a suggestion asks thousands of times.
struct ModelLimits {
    std::uint32_t layers = 0;
    std::uint32_t experts = 0;
    std::uint64_t vocabulary_rows = 0;
    std::uint64_t key_value_heads = 0;
    std::uint64_t fused_rows = 0;  ///< Of the trainers' qkv weight; 0 without one.
    std::vector<DivisibleUnits> units;
    std::vector<ParameterClass> payload;  ///< In the dtype that it is stored in.
    std::optional<GpuMemory> memory;      ///< Absent: of any size.

    ModelLimits(const Inventory& model, std::optional<GpuMemory> gpu_memory);

private:
    void add(const ParameterClass& entry);
};

/// The layout that `text` means, and everything that is wrong with it, without suggestions.
[[nodiscard]] std::pair<TrainLayout, Faults> examine_train(const LayoutText& text,
                                                           std::uint32_t gpus,
                                                           const ModelLimits& model);
[[nodiscard]] std::pair<GenerateLayout, Faults> examine_generate(const LayoutText& text,
                                                                 std::uint32_t gpus,
                                                                 const ModelLimits& model);

}  // namespace refit
