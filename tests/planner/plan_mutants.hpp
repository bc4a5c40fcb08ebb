// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "random_refit.hpp"
#include "refit/overlap.hpp"
#include "refit/plan.hpp"

namespace refit::testing_support {

/// How a mutant is known to be wrong.
enum class Proof : std::uint8_t {
    kByConstruction,  ///< It always is.
    kByElements,      ///< Where run_elements says so; else the plan still delivers, and is no mutant.
};

/// A way to spoil a plan. `apply` changes one thing, or returns false where there is nothing to change.
/// Indices in the plan stay valid where the proof is by elements.
struct Mutation {
    std::string_view name;
    Proof proof;
    bool (*apply)(Plan& plan, Dice& dice, const RandomRefit& refit);
};

[[nodiscard]] std::vector<Mutation> mutations();

/// The same plan with each part of a message in several: apart by tensors and by rows, as if the message had
/// been cut.
[[nodiscard]] Plan with_finer_parts(Plan plan);

/// One result of the overlap, spoilt.
struct CellMutation {
    std::string_view name;
    bool (*apply)(std::vector<OverlapCell>& cells,
                  Dice& dice,
                  const Distribution& source,
                  const Distribution& destination);
};

[[nodiscard]] std::span<const CellMutation> cell_mutations();

/// What the overlap finds for each class and generator stage.
using Cells = std::vector<std::vector<std::vector<OverlapCell>>>;
[[nodiscard]] Cells cells_of(const Workload& workload);

/// Each cell sent from the first holder to each replica: a direct plan of whatever cells there are.
[[nodiscard]] Plan plan_of(const Cells& cells, const Workload& workload);

}  // namespace refit::testing_support
