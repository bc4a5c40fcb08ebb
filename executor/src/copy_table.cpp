// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/copy_table.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace refit::exec {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();

std::uint64_t rows_of(const StridedCopy& copy) {
    std::uint64_t rows = 1;
    for (std::size_t axis = 0; axis < copy.axes; ++axis) {
        rows *= copy.count[axis];
    }
    return rows;
}

/// Without axes of one step, and with one axis for two of which the outer goes on where the inner stops.
StridedCopy joined(const StridedCopy& copy) {
    StridedCopy result{copy.source, copy.destination, copy.run};
    for (std::size_t axis = 0; axis < copy.axes; ++axis) {
        const auto from = copy.source_step[axis];
        const auto to = copy.destination_step[axis];
        if (copy.count[axis] == 1) {
            continue;
        }
        if (result.axes > 0 && result.source_step[result.axes - 1] == copy.count[axis] * from &&
            result.destination_step[result.axes - 1] == copy.count[axis] * to) {
            result.count[result.axes - 1] *= copy.count[axis];
            result.source_step[result.axes - 1] = from;
            result.destination_step[result.axes - 1] = to;
            continue;
        }
        result.count[result.axes] = copy.count[axis];
        result.source_step[result.axes] = from;
        result.destination_step[result.axes] = to;
        ++result.axes;
    }
    if (result.axes > 0 && result.source_step[result.axes - 1] == copy.run &&
        result.destination_step[result.axes - 1] == copy.run) {
        --result.axes;
        result.run *= result.count[result.axes];
    }
    return result;
}

/// Copies of fewer than 2^31 rows: parts of the outermost axis where that has to be cut.
void split(const StridedCopy& copy, std::vector<StridedCopy>& into) {
    const std::uint64_t rows = rows_of(copy);
    if (rows <= kMost) {
        into.push_back(copy);
        return;
    }
    const std::uint64_t step = std::max<std::uint64_t>(1, kMost / (rows / copy.count[0]));
    for (std::uint64_t begin = 0; begin < copy.count[0]; begin += step) {
        StridedCopy part = copy;
        part.source += begin * copy.source_step[0];
        part.destination += begin * copy.destination_step[0];
        part.count[0] = std::min(step, copy.count[0] - begin);
        split(joined(part), into);
    }
}

TiledCopy tiled(const StridedCopy& copy, std::uint32_t tile_bytes) {
    TiledCopy result;
    result.source = copy.source;
    result.destination = copy.destination;
    result.width = access_width(copy);
    result.run_units = copy.run / result.width;
    result.rows = static_cast<std::uint32_t>(rows_of(copy));
    result.axes = static_cast<std::uint32_t>(copy.axes);
    for (std::size_t axis = 0; axis < copy.axes; ++axis) {
        const std::size_t from = copy.axes - 1 - axis;
        result.extents[axis] = Divider::of(static_cast<std::uint32_t>(copy.count[from]));
        result.source_strides[axis] = copy.source_step[from];
        result.destination_strides[axis] = copy.destination_step[from];
    }
    const std::uint64_t tile_units = tile_bytes / result.width;
    const std::uint64_t columns = std::min(result.run_units, tile_units);
    const std::uint64_t per_run = (result.run_units + columns - 1) / columns;
    if (per_run > kMost) {
        throw std::length_error{"a run of a copy has more than 2^31 tiles"};
    }
    result.tile_columns = Divider::of(static_cast<std::uint32_t>(columns));
    result.tiles_per_run = Divider::of(static_cast<std::uint32_t>(per_run));
    result.tile_rows =
        per_run > 1 ? 1
                    : static_cast<std::uint32_t>(std::min<std::uint64_t>(result.rows, tile_units / columns));
    return result;
}

std::uint64_t tiles_of(const TiledCopy& copy) {
    return (std::uint64_t{copy.rows} + copy.tile_rows - 1) / copy.tile_rows * copy.tiles_per_run.divisor;
}

}  // namespace

std::uint32_t access_width(const StridedCopy& copy) noexcept {
    std::uint64_t bits = copy.source | copy.destination | copy.run | 16U;
    for (std::size_t axis = 0; axis < copy.axes; ++axis) {
        bits |= copy.source_step[axis] | copy.destination_step[axis];
    }
    return std::uint32_t{1} << std::countr_zero(bits);
}

CopyTable make_copy_table(std::span<const StridedCopy> copies, std::uint32_t tile_bytes) {
    std::vector<StridedCopy> parts;
    for (const StridedCopy& copy : copies) {
        if (copy.bytes() > 0) {
            split(joined(copy), parts);
        }
    }
    CopyTable table;
    table.copies.reserve(parts.size());
    std::uint64_t tiles = 0;
    for (const StridedCopy& part : parts) {
        table.copies.push_back(tiled(part, tile_bytes));
        table.first_tiles.push_back(static_cast<std::uint32_t>(tiles));
        table.bytes += part.bytes();
        tiles += tiles_of(table.copies.back());
        if (tiles > kMost) {
            throw std::length_error{"the copies of a wave have more than 2^31 tiles"};
        }
    }
    table.tiles = static_cast<std::uint32_t>(tiles);
    return table;
}

void run_copy_table(const CopyTable& table) {
    for (std::uint32_t index = 0; index < table.tiles; ++index) {
        const std::uint32_t which =
            copy_of_tile(table.first_tiles.data(), static_cast<std::uint32_t>(table.copies.size()), index);
        const TiledCopy& copy = table.copies[which];
        const Tile tile = tile_at(copy, index - table.first_tiles[which]);
        for (std::uint32_t unit = 0; unit < tile.units; ++unit) {
            const UnitPlace place = place_of(copy, tile, unit);
            // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses of any device are kept as numbers.
            std::memcpy(reinterpret_cast<void*>(copy.destination + place.destination),
                        reinterpret_cast<const void*>(copy.source +
                                                      place.source),  // NOLINT(performance-no-int-to-ptr)
                        copy.width);
        }
    }
}

}  // namespace refit::exec
