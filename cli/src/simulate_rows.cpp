// SPDX-License-Identifier: Apache-2.0
#include "simulate_rows.hpp"

#include <cmath>
#include <vector>

#include "cells.hpp"
#include "compare_table.hpp"
#include "refit/link_rates.hpp"
#include "rows_text.hpp"

namespace refit::cli {
namespace {

constexpr std::size_t kPiece = 512;  ///< Rows that are handed on at once.

std::string number(double value) {
    return number_text("%.9g", value);
}

std::vector<Row> answer_rows(const ShownSimulation& shown) {
    std::vector<Row> rows{{"simulated", number(shown.simulation.seconds())},
                          {"closed form", number(shown.estimate.seconds.value())}};
    if (shown.estimate.published && shown.estimate.published->seconds) {
        rows.push_back({"published", number(shown.estimate.published->seconds->value())});
    }
    rows.push_back({"links alone", number(shown.simulation.transfer_seconds)});
    rows.push_back({"bound at line rate", number(shown.report.line_rate_bound.time.value())});
    return rows;
}

}  // namespace

bool write_timeline_csv(const Simulation& simulation, const Cluster& cluster, const io::TextSink& sink) {
    const auto limits = task_limits(simulation);
    std::vector<std::string> names(simulation.graph.links.size());
    auto text = csv({"task",
                     "activity",
                     "lane",
                     "item",
                     "plan_stage",
                     "start_seconds",
                     "end_seconds",
                     "bytes",
                     "limited_by"},
                    {});
    std::vector<Row> rows;
    const auto flush = [&] {
        for (const auto& row : rows) {
            text += csv(row, {});
        }
        rows.clear();
        const bool goes_on = sink(text);
        text.clear();
        return goes_on;
    };
    for (std::uint32_t i = 0; i < simulation.graph.tasks.size(); ++i) {
        const auto& task = simulation.graph.tasks[i];
        std::string limit;
        if (limits[i] != RateSegment::kOwnCap) {
            auto& name = names[limits[i]];
            name = name.empty() ? describe_link(simulation.graph, limits[i], cluster) : name;
            limit = name;
        }
        rows.push_back({std::to_string(i),
                        std::string{name_of(task.activity)},
                        simulation.graph.lanes[task.lane].name,
                        std::to_string(task.item),
                        std::to_string(task.stage),
                        number(simulation.run.start[i]),
                        number(simulation.run.end[i]),
                        number_text("%.0f", task.bytes),
                        limit});
        if (rows.size() == kPiece && !flush()) {
            return false;
        }
    }
    return flush();
}

std::string simulate_markdown(const ShownSimulation& shown) {
    const auto& cluster = shown.scenario.cluster;
    std::vector<Row> path;
    for (const auto& part : path_parts(shown.simulation, cluster)) {
        path.push_back({std::string{name_of(part.activity)},
                        number(part.seconds),
                        number(shown.simulation.busy[static_cast<std::size_t>(part.activity)]),
                        part.limit});
    }
    std::vector<Row> links;
    for (const auto& use : port_uses(shown.simulation, cluster)) {
        links.push_back({use.name,
                         use.busiest,
                         number_text("%.0f", use.bytes),
                         number(use.busy_seconds),
                         number_text("%.3f", use.share)});
    }
    std::vector<Row> phases;
    for (const auto& pair : phase_pairs(shown.simulation, shown.estimate)) {
        phases.push_back({pair.name, number(pair.seconds), number(pair.estimate)});
    }
    return "# " + shown.scenario.name + " by " + title_of(shown.estimate, shown.scenario) + "\n\n" +
           markdown({"time", "seconds"}, answer_rows(shown)) + "\n" +
           markdown({"activity", "critical_seconds", "busy_seconds", "limited_by"}, path) + "\n" +
           markdown({"phase", "critical_seconds", "estimate_seconds"}, phases) + "\n" +
           markdown({"links", "busiest", "bytes", "busy_seconds", "share"}, links);
}

}  // namespace refit::cli
