// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>

#include "refit/cluster.hpp"
#include "refit/fabric.hpp"
#include "refit/system.hpp"
#include "refit/workload.hpp"

namespace refit::testing_support {

/// Numbers that depend on the seed alone, on every platform.
class Dice {
public:
    explicit Dice(std::uint64_t seed) : engine_{seed} {}

    /// Range: [low, high].
    [[nodiscard]] std::uint64_t between(std::uint64_t low, std::uint64_t high) {
        return low + engine_() % (high - low + 1);
    }
    [[nodiscard]] std::uint32_t index(std::size_t count) {
        return static_cast<std::uint32_t>(engine_() % count);
    }
    /// True once in `times`.
    [[nodiscard]] bool once_in(std::uint64_t times) { return engine_() % times == 0; }

private:
    std::mt19937_64 engine_;
};

/// A workload that no model's layout gave, on a cluster of its own.
struct RandomRefit {
    Cluster cluster;
    SideRates rates;
    Workload workload;

    /// Pairs of a source and a destination distribution.
    [[nodiscard]] std::size_t pairs() const;
};

/// Tensors of 1 to 4 dims; on each side a mesh of up to 3 axes that replicates, cuts (torch.chunk's uneven
/// way, or strided), or fused segments cut apart; ranks in any order; several classes, stages and layers.
/// `system` lends its rates; tensors have at most `most_elements`, and `scale` times as many elements on one
/// axis.
[[nodiscard]] RandomRefit random_refit(Dice& dice,
                                       const System& system,
                                       std::uint64_t most_elements,
                                       std::uint64_t scale = 1);

}  // namespace refit::testing_support
