// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "refit/bound.hpp"
#include "refit/fabric.hpp"
#include "refit/plan.hpp"
#include "refit/scenario.hpp"
#include "refit/units.hpp"
#include "refit/workload.hpp"

namespace refit {

/// The bound of the same work under another condition.
struct Relaxation {
    std::string condition;  ///< "if only the holders' own NICs send", "one training stage at a time" …
    Seconds bound;
};

/// How near a plan is to the best that any could be.
struct Certificate {
    Seconds port_time;     ///< The busiest port or uplink, all others beside it: no schedule of this plan is faster.
    std::string resource;  ///< Of that port: "nic-out", "nic-in", "nvlink-out", "nvlink-in"; "spine-up" or "spine-down".
    RankId rank;           ///< Whose it is; of a spine, the first of its pod.
    std::optional<std::uint32_t> pod;  ///< Whose uplinks they are, where they are busy longest.
    CutBounds bounds;
    std::vector<Relaxation> relaxations;

    /// Port time over the largest bound; 1 where there is nothing to move.
    [[nodiscard]] double ratio() const;
};

/// Without relaxations that change the job.
[[nodiscard]] Certificate certify(const Plan& plan, const Cluster& cluster, const SideRates& rates, const Workload& workload);

/// At the rates that the scenario's engine reaches.
[[nodiscard]] Certificate certify(const Plan& plan, const Scenario& scenario, const Workload& workload);

}  // namespace refit
