// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "refit/workload.hpp"

namespace refit {

/// Tensors that the export yields one after another: those of one class in one layer.
struct ExportRun {
    std::uint32_t parameter = 0;  ///< Index of the class.
    std::uint32_t slice = 0;      ///< Of it, no copy.
    std::uint32_t tensor = 0;     ///< Of the slice's tensors; the experts of a layer are one.
    std::uint64_t tensors = 1;    ///< Hugging Face tensors: experts, or one.
    std::uint64_t bytes = 0;      ///< Of each.
};

/// All tensors of these classes in the order of the export: what lies before the layers, layer by layer, the
/// rest.
[[nodiscard]] std::vector<ExportRun> export_order(const Workload& workload,
                                                  std::span<const std::uint32_t> classes);

/// Part of a run that lies in one pack.
struct PackPiece {
    std::uint32_t run = 0;    ///< Index of it.
    std::uint64_t first = 0;  ///< Of its tensors.
    std::uint64_t tensors = 0;
    bool operator==(const PackPiece&) const = default;
};

/// What is broadcast as one.
struct Pack {
    std::uint64_t bytes = 0;
    std::vector<PackPiece> pieces;
    bool operator==(const Pack&) const = default;
};

/// Fills packs in order. A pack closes when it exceeds the target, so it overshoots by up to one tensor.
/// Source: NeMo RL packed_tensor.py.
[[nodiscard]] std::vector<Pack> make_packs(std::span<const ExportRun> runs, std::uint64_t target);

/// The most bytes that `buffers` packs in a row hold.
[[nodiscard]] std::uint64_t most_in_flight(std::span<const Pack> packs, std::uint32_t buffers);

}  // namespace refit
