// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "refit/copy_tile.hpp"

namespace refit::exec::cuda {

/// A table of copies in device memory; as CopyTable has it.
struct DeviceCopies {
    const TiledCopy* copies = nullptr;
    const std::uint32_t* first_tiles = nullptr;
    std::uint32_t count = 0;
    std::uint32_t tiles = 0;
};

/// Elements of a logical tensor that lie one after the other in device memory, row by row of a box.
struct DeviceElements {
    static constexpr std::uint32_t kMostAxes = 5;

    std::uint64_t address = 0;
    std::uint64_t seed = 0;                              ///< As seed_of gives it.
    std::uint64_t base = 0;                              ///< Logical index of the first element.
    std::uint64_t count = 0;                             ///< Elements.
    std::uint64_t extents[kMostAxes] = {1, 1, 1, 1, 1};  ///< Of the box, the innermost axis first.
    std::uint64_t strides[kMostAxes] = {};               ///< In logical indices.
    std::uint32_t element_bytes = 1;                     ///< Range: 1, 2, 4.
};

/// What a comparison found of one DeviceElements.
struct DeviceVerdict {
    std::uint64_t first_wrong =
        0;  ///< Place in the box, row-major; `count` of the elements where all are right.
    std::uint64_t checksum = 0;  ///< As checksum_of gives it, over this box.
};

/// Runs all tiles on a grid that fills the device `multiprocessors` wide. Pre: tiles > 0.
[[nodiscard]] cudaError_t launch_copies(const DeviceCopies& table, int multiprocessors, cudaStream_t stream);

/// Writes the values of the elements, or their complements. Pre: count > 0.
[[nodiscard]] cudaError_t launch_fill(const DeviceElements& elements, bool complemented, cudaStream_t stream);

/// Compares with the values. Pre: count > 0; `verdict` (device memory) has first_wrong = count and checksum =
/// 0.
[[nodiscard]] cudaError_t launch_compare(const DeviceElements& elements,
                                         DeviceVerdict* verdict,
                                         cudaStream_t stream);

}  // namespace refit::exec::cuda
