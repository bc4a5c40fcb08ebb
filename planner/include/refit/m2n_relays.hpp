// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "refit/plan.hpp"
#include "refit/result.hpp"
#include "refit/scenario.hpp"
#include "refit/workload.hpp"

namespace refit {

/// What M2N sends for all parameters of a refit, as messages and hops: injections, the ring from domain to domain, and
/// the stores to the other replicas of a domain; the calls of all layers of a class and pair of stages together. M2N cuts
/// each message into 8 slices, one a CTA, which it hands on. Where shards do not lie on neighbouring ranks, ranks are
/// taken as renumbered.
/// Errors: what m2n_scenario_faults says. Source: docs/m2n.md.
[[nodiscard]] Result<RelayTable> m2n_relays(const Scenario& scenario, const Workload& workload);

}  // namespace refit
