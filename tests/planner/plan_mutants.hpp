// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "random_refit.hpp"
#include "refit/plan.hpp"

namespace refit::testing_support {

/// How a mutant is known to be wrong.
enum class Proof : std::uint8_t {
    kByConstruction,  ///< It always is.
    kByElements,      ///< Where run_elements says so; else the plan still delivers, and is no mutant.
};

/// A way to spoil a plan. `apply` changes one thing, or returns false where there is nothing to change. Indices in the
/// plan stay valid where the proof is by elements.
struct Mutation {
    std::string_view name;
    Proof proof;
    bool (*apply)(Plan& plan, Dice& dice, const RandomRefit& refit);
};

[[nodiscard]] std::span<const Mutation> mutations();

}  // namespace refit::testing_support
