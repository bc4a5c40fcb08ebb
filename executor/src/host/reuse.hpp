// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "copies.hpp"

namespace refit::exec::host {

/// How far apart in time, in bytes touched between, the uses of a stretch of memory lie: what tells which
/// cache still holds it. By tiles of `kTile`.
class Reuse {
public:
    explicit Reuse(const std::vector<program::RankProgram>& programs);

    struct Distances {
        double source = 0;       ///< Mean of logarithms, of bytes.
        double destination = 0;  ///< As for the source.
    };
    /// Bytes touched since an earlier wave used what `copy` reads and writes; then it is used now.
    /// `is_repeated`: its source was read just before. Waves count up over all runs.
    Distances use(const Task& task, const Copy& copy, bool is_repeated, std::uint64_t wave);

private:
    struct Tile {
        std::uint64_t wave = ~std::uint64_t{0};  ///< Which used it last.
        std::uint64_t in_wave = 0;               ///< Clock of the last use.
        std::uint64_t before = 0;                ///< Clock of the last use by an earlier wave.
    };
    using Arenas = std::array<std::vector<Tile>, 3>;

    double touch(Tile& tile, std::uint64_t wave) const;

    std::vector<Arenas> ranks_;
    std::uint64_t clock_ = 1;
};

}  // namespace refit::exec::host
