// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "refit/io/json_file.hpp"
#include "simulate_table.hpp"

namespace refit::cli {

/// The timeline, one line a task: task, activity, lane, item, plan_stage, start_seconds, end_seconds, bytes,
/// limited_by. Returns whether the sink took all. Pre: the simulation kept its segments.
bool write_timeline_csv(const Simulation& simulation, const Cluster& cluster, const io::TextSink& sink);

/// Times, critical path, links and lanes as Markdown tables.
[[nodiscard]] std::string simulate_markdown(const ShownSimulation& shown);

}  // namespace refit::cli
