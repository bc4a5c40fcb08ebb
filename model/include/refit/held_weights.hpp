// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "refit/layout.hpp"
#include "refit/parameter.hpp"
#include "refit/system.hpp"

namespace refit {

/// The rank of a side that holds most of the model.
struct FullestRank {
    std::uint32_t rank = 0;  ///< Numbered within its side; the first of equals.
    std::uint32_t stage = 0;
    Bytes bytes;  ///< Weights alone, padding included: no gradients, optimizer, activations or caches.
    bool operator==(const FullestRank&) const = default;
};

/// Shape: `payload` holds the classes that a refit moves, each in the dtype that it is stored in.
/// Pre: `make_train_layout`, or for generators `make_generate_layout`, takes the layout.
[[nodiscard]] FullestRank fullest_rank(const TrainLayout& layout, std::span<const ParameterClass> payload);
[[nodiscard]] FullestRank fullest_rank(const GenerateLayout& layout,
                                       std::span<const ParameterClass> payload,
                                       std::uint32_t layers);

/// What the weights of one side have to fit into.
struct GpuMemory {
    Bytes bytes;                 ///< Of one GPU.
    std::string gpu;             ///< "H100".
    Dtype dtype = Dtype::kBf16;  ///< Of the parameters that the model stores in BF16, as in a scenario.
    bool operator==(const GpuMemory&) const = default;
};

[[nodiscard]] GpuMemory memory_of(const System& system, Dtype dtype);

}  // namespace refit
