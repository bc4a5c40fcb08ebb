// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "refit/certificate.hpp"
#include "refit/cluster.hpp"
#include "refit/memory.hpp"
#include "refit/memory_advice.hpp"
#include "refit/plan.hpp"
#include "refit/plan_summary.hpp"
#include "refit/workload.hpp"

namespace refit::cli {

/// A plan with what is known of it, to be shown.
struct ShownPlan {
    std::string title;  ///< "deepseek-v3-h100".
    const Plan& plan;
    const Workload& workload;
    const Cluster& cluster;
    const PlanSummary& summary;
    const Certificate& certificate;
    const MemoryAccount& memory;
    const std::optional<PackSizes>& packs;
};

/// The plan for people, in 80 columns: sums, certificate, what each relaxation gives, the busiest ranks and pairs, links
/// and classes.
[[nodiscard]] std::string plan_text(const ShownPlan& shown);

/// Members `certificate`, `memory`, `ranks`, `pairs`, `links` and `classes` of the report of a plan.
void add_plan_json(nlohmann::json& report, const ShownPlan& shown);

/// What each rank sends and receives, one line a rank.
[[nodiscard]] std::string plan_csv(const ShownPlan& shown);

/// "trainer rank 5", "generation rank 0 (rank 256)".
[[nodiscard]] std::string rank_text(const Cluster& cluster, RankId rank);

}  // namespace refit::cli
