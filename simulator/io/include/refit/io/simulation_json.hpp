// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "refit/cluster.hpp"
#include "refit/jitter.hpp"
#include "refit/report.hpp"
#include "refit/simulate.hpp"

namespace refit::io {

/// Member `simulation` of a report: critical path, activities, phases beside the estimate's, links and lanes,
/// as data/schema/report.json describes it.
[[nodiscard]] nlohmann::json to_json(const Simulation& simulation,
                                     const MethodReport& estimate,
                                     const Cluster& cluster);

/// Member `jitter` of it: what was drawn, median, 95 % point and the longest.
[[nodiscard]] nlohmann::json to_json(const Jitter& jitter, const JitterTimes& times);

}  // namespace refit::io
