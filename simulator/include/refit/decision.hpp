// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "refit/units.hpp"

namespace refit {

/// One way to do a refit, as it was timed and as it is predicted.
struct Option {
    std::string id;      ///< Of its first record.
    std::string engine;  ///< "nemo-rl-reshard".
    Seconds published;   ///< The middle of its range.
    Seconds predicted;
};

/// What choosing by prediction among timed ways of one refit costs.
struct Decision {
    std::string model;
    std::vector<Option> options;  ///< At least two.
    std::size_t chosen = 0;       ///< The shortest predicted.
    std::size_t best = 0;         ///< The shortest published.
    double regret = 0.0;          ///< By how much what was chosen is slower than the best, relative to it.
};

/// Two refits that differ in one thing, whose published ranges lie at least 5 % apart.
struct FactorChange {
    std::string from;
    std::string to;
    std::string factor;      ///< "engine", "train layout", "generation layout", "GPUs" or "system".
    double published = 1.0;  ///< Ratio of the middles, `to` over `from`.
    double predicted = 1.0;
    /// Whether the prediction rises where the published time does.
    [[nodiscard]] bool has_right_sign() const noexcept { return (published > 1.0) == (predicted > 1.0); }
};

}  // namespace refit
