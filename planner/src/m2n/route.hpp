// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "builder.hpp"
#include "refit/m2n.hpp"
#include "refit/m2n_limits.hpp"

namespace refit::m2n {

/// The way that a call takes, before any bytes are looked at.
struct Route {
    M2nPath path;
    M2nBalance balance;
    M2nSide source;
    M2nSide destination;
    Arrangement arrangement;
};

/// Pre: no fault of the call, and no refusal that speaks of meshes, placements or shapes.
[[nodiscard]] Route route_of(const M2nCall& call, const M2nSettings& settings);

/// Limits on how the tensors are described; those of the plan only make sense without these.
[[nodiscard]] std::vector<M2nRefusal> description_refusals(const M2nCall& call);
/// Limits that the route exceeds.
[[nodiscard]] std::vector<M2nRefusal> plan_refusals(const Route& route,
                                                    const ShardOverlap& overlap,
                                                    const M2nSettings& settings);

}  // namespace refit::m2n
