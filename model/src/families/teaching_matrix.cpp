// SPDX-License-Identifier: Apache-2.0
// A single matrix, small enough to follow by hand: the model of the teaching scenarios.
#include "builder.hpp"
#include "family.hpp"

namespace refit::families {

Parameters teaching_matrix(const Facts& facts, Faults& faults) {
    const auto rows = facts.positive("rows", faults);
    const auto columns = facts.positive("columns", faults);
    if (!faults.empty()) {
        return {};
    }
    Builder builder;
    builder.enter("model.layers.{layer}.", layer_range(0, 1));
    builder.column("mlp.up_proj.weight", {rows, columns}, rows, "rows").is_ffn = true;
    return {1, std::move(builder).finish()};
}

}  // namespace refit::families
