// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "refit/exec/copy_tile.hpp"
#include "refit/exec/strided_copy.hpp"

namespace refit::exec {

/// All copies of a wave in the form that one kernel runs: block after block takes the next tile of any of
/// them. Invariant: the columns have equal length; `first_tiles` ascends; tiles are below 2^31.
struct CopyTable {
    static constexpr std::uint32_t kTileBytes = 32768;

    std::vector<TiledCopy> copies;
    std::vector<std::uint32_t> first_tiles;  ///< By copy: the tiles of all before it.
    std::uint32_t tiles = 0;
    std::uint64_t bytes = 0;
};

/// The widest access, in bytes, that addresses, run and steps allow. Range: 1, 2, 4, 8 or 16.
[[nodiscard]] std::uint32_t access_width(const StridedCopy& copy) noexcept;

/// Cuts copies, whose offsets are addresses, into tiles of at most `tile_bytes`; those without bytes are left
/// out, and one of 2^31 rows or more is split. Pre: tile_bytes >= 16. Errors: std::length_error beyond 2^31
/// tiles, which are 64 TiB.
[[nodiscard]] CopyTable make_copy_table(std::span<const StridedCopy> copies,
                                        std::uint32_t tile_bytes = CopyTable::kTileBytes);

/// Does on the host what the kernel does on a device, unit by unit. Slow: for tests, and as its
/// specification.
void run_copy_table(const CopyTable& table);

}  // namespace refit::exec
