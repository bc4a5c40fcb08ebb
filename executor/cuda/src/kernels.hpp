// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "refit/exec/copy_tile.hpp"
#include "refit/exec/region_elements.hpp"

namespace refit::exec::cuda {

/// A table of copies in device memory; as CopyTable has it.
struct DeviceCopies {
    const TiledCopy* copies = nullptr;
    const std::uint32_t* first_tiles = nullptr;
    std::uint32_t count = 0;
    std::uint32_t tiles = 0;
};

/// Runs all tiles on a grid that fills the device `multiprocessors` wide. Pre: tiles > 0.
[[nodiscard]] cudaError_t launch_copies(const DeviceCopies& table, int multiprocessors, cudaStream_t stream);

/// Writes the values of the elements, or their complements. Pre: count > 0.
[[nodiscard]] cudaError_t launch_fill(const RegionElements& elements, bool complemented, cudaStream_t stream);

/// Lowers the verdict's (device memory) first_wrong, and adds to its checksum. Pre: count > 0.
[[nodiscard]] cudaError_t launch_compare(const RegionElements& elements,
                                         ElementVerdict* verdict,
                                         cudaStream_t stream);

}  // namespace refit::exec::cuda
