// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../planner/random_refit.hpp"
#include "../planner/study.hpp"
#include "refit/cluster.hpp"
#include "refit/methods.hpp"
#include "refit/program_schedule.hpp"

namespace refit::testing_support {

/// Nodes of `gpus` GPUs with the rates of H100: 400 Gbit/s, 450 GB/s.
inline System small_nodes(std::uint32_t gpus) {
    const auto figure = [](auto value) { return Figure<decltype(value)>{value, value, value, "made up"}; };
    return {.name = "small",
            .title = "small nodes",
            .gpu = "H100",
            .gpus_per_node = gpus,
            .gpus_per_domain = gpus,
            .gpu_memory = figure(Bytes{std::uint64_t{80} << 30U}),
            .nic = figure(Bandwidth::gigabytes_per_second(50)),
            .nvlink = figure(Bandwidth::gigabytes_per_second(450)),
            .hbm_copy = figure(Bandwidth::gigabytes_per_second(1450))};
}

inline Cluster small_cluster(std::uint32_t trainers, std::uint32_t generators, std::uint32_t gpus_per_node) {
    const System system = small_nodes(gpus_per_node);
    return {system, system, trainers, generators, {gpus_per_node, gpus_per_node, true}};
}

/// A plan with all that it is for.
struct SmallJob {
    std::string name;
    Cluster cluster;
    Workload workload;
    Plan plan;

    [[nodiscard]] std::uint32_t ranks() const { return cluster.gpus(); }
    [[nodiscard]] program::Schedule schedule(const program::Settings& settings = {}) const {
        return {plan, workload, cluster.train_gpus(), settings};
    }
};

/// Plans that move point to point, in stages, over relays and by collectives.
inline constexpr Method kMethods[] = {
    Method::kGatherBroadcast, Method::kDirect, Method::kStriped, Method::kOptimal};

/// The workload of those who are left. Pre: one stage; each shard has a holder left, and so has each engine.
inline Workload workload_without(const study::Layout& layout, const Losses& losses) {
    const auto without = [&](const Distribution& whole, std::uint32_t first) {
        std::vector<Shard> shards{whole.shards().begin(), whole.shards().end()};
        for (Shard& shard : shards) {
            std::erase_if(shard.members,
                          [&](std::uint32_t member) { return losses.is_absent(first + member); });
        }
        return Distribution{{whole.shape().begin(), whole.shape().end()}, std::move(shards)};
    };
    const auto whole = study::workload_of(layout);
    std::vector<WorkloadClass> classes{whole.classes().begin(), whole.classes().end()};
    for (auto& entry : classes) {
        entry.source = without(entry.source, 0);
        entry.destinations.front() = without(entry.destinations.front(), layout.trainers());
    }
    return Workload::of(std::move(classes), 1, layout.trainers(), layout.generators(), losses);
}

/// `losses`: as workload_without takes them.
inline SmallJob job_of(const std::string& name,
                       const study::Layout& layout,
                       Method method,
                       std::uint32_t gpus_per_node,
                       const Losses& losses = {}) {
    Cluster cluster = small_cluster(layout.trainers(), layout.generators(), gpus_per_node).without(losses);
    Workload workload = losses.empty() ? study::workload_of(layout) : workload_without(layout, losses);
    Plan plan = make_plan(method, cluster, port_rates(cluster, 1, 1), workload).value();
    return {
        name + ", " + std::string{name_of(method)}, std::move(cluster), std::move(workload), std::move(plan)};
}

/// Layouts of 16 ranks: expert parallel to tensor parallel and the like.
inline std::vector<std::pair<std::string, study::Layout>> layouts_of_16(std::uint64_t scale = 1) {
    return {
        {"EP8 to TP8", {{16, 32, 8 * scale}, 8, 1, 1, 1, 8, 1}},
        {"EP8 to TP2 x DP4", {{16, 24, 5 * scale}, 8, 1, 1, 1, 2, 4}},
        {"2 stages of EP4 to TP4 x DP2", {{8, 16, 12 * scale}, 4, 1, 2, 2, 4, 2}},
        {"dense TP4 x DP2 to TP8", {{64, 6 * scale}, 4, 2, 1, 1, 8, 1}},
        {"4 trainers to TP4 x DP3", {{32, 16 * scale}, 4, 1, 1, 1, 4, 3}},
    };
}

}  // namespace refit::testing_support
