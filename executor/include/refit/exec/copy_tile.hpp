// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "refit/exec/divider.hpp"

namespace refit::exec {

/// A copy as a kernel reads it, cut into tiles of whole runs, or of a part of one.
///
/// Everything here is constexpr, so that host and device run the same arithmetic: nvcc takes such functions
/// for device code with --expt-relaxed-constexpr. Invariant: fewer than 2^31 rows, tiles and units of a tile.
struct TiledCopy {
    static constexpr std::uint32_t kMostAxes = 5;

    std::uint64_t source = 0;                           ///< Address.
    std::uint64_t destination = 0;                      ///< Address.
    std::uint64_t run_units = 0;                        ///< Units of a run.
    std::uint64_t source_strides[kMostAxes] = {};       ///< Bytes, the innermost axis first.
    std::uint64_t destination_strides[kMostAxes] = {};  ///< Bytes.
    Divider extents[kMostAxes] = {};                    ///< The innermost axis first.
    Divider tile_columns;                               ///< Units of a row that a tile has.
    Divider tiles_per_run;        ///< More than one only where a run is larger than a tile.
    std::uint32_t rows = 0;       ///< Runs altogether.
    std::uint32_t tile_rows = 1;  ///< Rows of a tile.
    std::uint32_t axes = 0;
    std::uint32_t width = 1;  ///< Bytes of a unit: 1, 2, 4, 8 or 16.
};

/// The part of a copy that one block of threads does.
struct Tile {
    std::uint32_t first_row = 0;
    std::uint64_t first_column = 0;  ///< In units.
    std::uint32_t units = 0;
};

/// Pre: `index` is below the copy's number of tiles.
[[nodiscard]] constexpr Tile tile_at(const TiledCopy& copy, std::uint32_t index) noexcept {
    const std::uint32_t group = copy.tiles_per_run.quotient(index);
    const std::uint32_t part = index - group * copy.tiles_per_run.divisor;
    const std::uint32_t columns = copy.tile_columns.divisor;
    const std::uint64_t first_column = std::uint64_t{part} * columns;
    if (copy.tiles_per_run.divisor > 1) {
        const std::uint64_t left = copy.run_units - first_column;
        return {group, first_column, left < columns ? static_cast<std::uint32_t>(left) : columns};
    }
    const std::uint32_t first_row = group * copy.tile_rows;
    const std::uint32_t left = copy.rows - first_row;
    return {first_row, 0, (left < copy.tile_rows ? left : copy.tile_rows) * columns};
}

/// Where a unit lies on both sides. Unit: bytes from the first one.
struct UnitPlace {
    std::uint64_t source = 0;
    std::uint64_t destination = 0;
};

/// Pre: `unit` is below the tile's.
[[nodiscard]] constexpr UnitPlace place_of(const TiledCopy& copy,
                                           const Tile& tile,
                                           std::uint32_t unit) noexcept {
    const std::uint32_t local_row = copy.tile_columns.quotient(unit);
    const std::uint64_t column = tile.first_column + (unit - local_row * copy.tile_columns.divisor);
    UnitPlace place{column * copy.width, column * copy.width};
    std::uint32_t row = tile.first_row + local_row;
    for (std::uint32_t axis = 0; axis < copy.axes; ++axis) {
        const std::uint32_t next = copy.extents[axis].quotient(row);
        const std::uint64_t index = row - next * copy.extents[axis].divisor;
        place.source += index * copy.source_strides[axis];
        place.destination += index * copy.destination_strides[axis];
        row = next;
    }
    return place;
}

/// Which of ascending `first_tiles` begins at `tile` or last before it. Pre: count >= 1, first_tiles[0] <=
/// tile.
[[nodiscard]] constexpr std::uint32_t copy_of_tile(const std::uint32_t* first_tiles,
                                                   std::uint32_t count,
                                                   std::uint32_t tile) noexcept {
    std::uint32_t low = 0;
    std::uint32_t high = count;
    while (high - low > 1) {
        const std::uint32_t middle = low + (high - low) / 2;
        (first_tiles[middle] <= tile ? low : high) = middle;
    }
    return low;
}

}  // namespace refit::exec
