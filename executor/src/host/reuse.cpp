// SPDX-License-Identifier: Apache-2.0
#include "reuse.hpp"

#include <algorithm>
#include <cmath>

namespace refit::exec::host {
namespace {

/// Where a strided copy writes row `row` of all its rows.
std::uint64_t destination_of(const StridedCopy& copy, std::uint64_t row) {
    auto at = copy.destination;
    for (auto axis = copy.axes; axis-- > 0;) {
        at += row % copy.count[axis] * copy.destination_step[axis];
        row /= copy.count[axis];
    }
    return at;
}

}  // namespace

Reuse::Reuse(const std::vector<program::RankProgram>& programs) : ranks_(programs.size()) {
    for (std::size_t rank = 0; rank < programs.size(); ++rank) {
        for (std::size_t arena = 0; arena < program::kArenas; ++arena) {
            ranks_[rank][arena].resize(programs[rank].arena_bytes[arena] / kTile + 1);
        }
    }
}

double Reuse::touch(Tile& tile, std::uint64_t wave) const {
    if (tile.wave != wave) {
        tile.before = tile.in_wave;
        tile.wave = wave;
    }
    tile.in_wave = clock_;
    return std::log(static_cast<double>(std::max<std::uint64_t>(clock_ - tile.before, 1)));
}

Reuse::Distances Reuse::use(const Task& task, const Copy& copy, bool is_repeated, std::uint64_t wave) {
    const auto& shape = copy.shape;
    const auto bytes = shape.bytes();
    const auto over_range = [&](std::vector<Tile>& tiles, std::uint64_t first, std::uint64_t span) {
        double sum = 0.0;
        const auto begin = first / kTile;
        const auto end = (first + span - 1) / kTile + 1;
        for (auto i = begin; i < end; ++i) {
            sum += touch(tiles[i], wave);
        }
        return sum / static_cast<double>(end - begin);
    };
    Distances distances;
    distances.source = over_range(
        ranks_[task.giver][static_cast<std::size_t>(copy.from)], shape.source, shape.source_span());
    auto& written = ranks_[copy.taker][static_cast<std::size_t>(copy.to)];
    if (shape.axes == 0) {
        distances.destination = over_range(written, shape.destination, shape.run);
    } else {
        constexpr std::uint64_t kSamples = 32;
        const auto rows = bytes / shape.run;
        const auto samples = std::min(rows, kSamples);
        for (std::uint64_t i = 0; i < samples; ++i) {
            distances.destination += touch(written[destination_of(shape, i * rows / samples) / kTile], wave) /
                                     static_cast<double>(samples);
        }
    }
    clock_ += is_repeated ? bytes : 2 * bytes;
    return distances;
}

}  // namespace refit::exec::host
