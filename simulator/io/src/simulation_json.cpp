// SPDX-License-Identifier: Apache-2.0
#include "refit/io/simulation_json.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace refit::io {
namespace {

using Json = nlohmann::json;

Json limit_json(const Simulation& simulation, std::uint32_t limit, const Cluster& cluster) {
    return limit == RateSegment::kOwnCap ? Json(nullptr)
                                         : Json(describe_link(simulation.graph, limit, cluster));
}

Json path_json(const Simulation& simulation, const Cluster& cluster) {
    Json steps = Json::array();
    for (const auto& step : simulation.path) {
        const auto& task = simulation.graph.tasks[step.task];
        steps.push_back({{"task", step.task},
                         {"activity", name_of(task.activity)},
                         {"lane", simulation.graph.lanes[task.lane].name},
                         {"item", task.item},
                         {"stage", task.stage},
                         {"from_seconds", step.from},
                         {"to_seconds", step.to},
                         {"limited_by", limit_json(simulation, step.limit, cluster)}});
    }
    return steps;
}

Json activities_json(const Simulation& simulation) {
    Json list = Json::array();
    for (std::size_t i = 0; i < kActivities; ++i) {
        if (simulation.busy[i] > 0.0) {
            const auto activity = static_cast<Activity>(i);
            list.push_back({{"name", name_of(activity)},
                            {"phase", phase_of(activity)},
                            {"critical_seconds", simulation.critical[i]},
                            {"busy_seconds", simulation.busy[i]}});
        }
    }
    return list;
}

Json phases_json(const Simulation& simulation, const MethodReport& estimate) {
    Json list = Json::array();
    for (const char* name : {"fixed", "bulk", "gather", "broadcast", "load", "finalize"}) {
        double seconds = 0.0;
        double estimated = 0.0;
        for (std::size_t i = 0; i < kActivities; ++i) {
            seconds += phase_of(static_cast<Activity>(i)) == name ? simulation.critical[i] : 0.0;
        }
        for (const auto& phase : estimate.phases) {
            estimated += phase.name == name && !phase.is_hidden ? phase.seconds.value() : 0.0;
        }
        if (seconds > 0.0 || estimated > 0.0) {
            list.push_back({{"name", name}, {"seconds", seconds}, {"estimate_seconds", estimated}});
        }
    }
    return list;
}

/// "all trainers", "pod 2".
std::string owner_name(const Simulation& simulation, std::uint32_t link, const Cluster& cluster) {
    const auto name = describe_link(simulation.graph, link, cluster);
    return name.substr(name_of(simulation.graph.links[link].port).size() + std::string_view{" of "}.size());
}

Json links_json(const Simulation& simulation, const Cluster& cluster) {
    Json list = Json::array();
    for (const auto& usage : simulation.links) {
        const auto& owner = simulation.graph.links[usage.link];
        list.push_back({{"port", name_of(owner.port)},
                        {"section", owner.section},
                        {"ranks", owner_name(simulation, usage.link, cluster)},
                        {"members", simulation.graph.ranks_of(usage.link).size()},
                        {"bytes_per_second", simulation.graph.network.rate(usage.link)},
                        {"bytes", usage.bytes},
                        {"busy_seconds", usage.busy_seconds},
                        {"share", std::min(1.0, usage.share)}});
    }
    return list;
}

Json lanes_json(const Simulation& simulation) {
    Json list = Json::array();
    for (const auto& usage : simulation.lanes) {
        Json waits = Json::array();
        for (std::size_t i = 0; i < kActivities; ++i) {
            if (usage.waited[i] > 0.0) {
                waits.push_back({{"for", name_of(static_cast<Activity>(i))}, {"seconds", usage.waited[i]}});
            }
        }
        list.push_back({{"name", simulation.graph.lanes[usage.lane].name},
                        {"busy_seconds", usage.busy_seconds},
                        {"first_start_seconds", usage.first_start},
                        {"last_end_seconds", usage.last_end},
                        {"waits", std::move(waits)}});
    }
    return list;
}

}  // namespace

Json to_json(const Simulation& simulation, const MethodReport& estimate, const Cluster& cluster) {
    return {{"seconds", simulation.seconds()},
            {"transfer_seconds", simulation.transfer_seconds},
            {"tasks", simulation.graph.tasks.size()},
            {"critical_path", path_json(simulation, cluster)},
            {"activities", activities_json(simulation)},
            {"phases", phases_json(simulation, estimate)},
            {"links", links_json(simulation, cluster)},
            {"lanes", lanes_json(simulation)}};
}

Json to_json(const Jitter& jitter, const JitterTimes& times) {
    return {{"links_spread", jitter.links},
            {"hosts_spread", jitter.hosts},
            {"samples", jitter.samples},
            {"seed", jitter.seed},
            {"median_seconds", times.quantile(0.5)},
            {"p95_seconds", times.quantile(0.95)},
            {"longest_seconds", times.seconds.back()}};
}

}  // namespace refit::io
