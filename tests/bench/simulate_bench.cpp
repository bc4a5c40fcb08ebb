// SPDX-License-Identifier: Apache-2.0
// Whole refits, event by event, within this process: the plan is there, the graph and both runs (with hosts,
// and links alone) are counted.
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "medians.hpp"
#include "refit/io/library.hpp"
#include "refit/methods.hpp"
#include "refit/simulate.hpp"
#include "value_of.hpp"

namespace refit::bench {
namespace {

constexpr int kRepetitions = 5;
constexpr double kMinSeconds = 0.02;

/// A refit, and what all its methods together may take.
struct SimulateCase {
    std::string name;
    std::string scenario;
    std::string train_gpus;  ///< Empty: the scenario's.
    std::string generate_gpus;
    std::vector<Method> methods;
    double target_seconds;
};

const std::vector<SimulateCase>& cases() {
    static const std::vector<SimulateCase> all{
        {"deepseek_v3_both", "deepseek-v3-h100", "", "", {Method::kGatherBroadcast, Method::kHybrid}, 0.2},
        {"kimi_k3_4096_gpus_both",
         "kimi-k3-gb200",
         "2048",
         "2048",
         {Method::kGatherBroadcast, Method::kHybrid},
         2.0},
        {"kimi_k3_4096_gpus_direct", "kimi-k3-gb200", "2048", "2048", {Method::kDirect}, 2.0},
        {"kimi_k3_4096_gpus_optimal", "kimi-k3-gb200", "2048", "2048", {Method::kOptimal}, 2.0},
        {"slider_1152_ranks_reshard", "deepseek-v3-gb200", "512", "640", {Method::kHybrid}, 0.05},
        {"slider_1152_ranks_broadcast", "deepseek-v3-gb200", "512", "640", {Method::kGatherBroadcast}, 0.05},
    };
    return all;
}

void add(const SimulateCase& entry, const io::Library& library) {
    auto draft = value_of(library.scenario(entry.scenario));
    if (!entry.train_gpus.empty()) {
        draft.apply({"train.gpus", entry.train_gpus, ""});
        draft.apply({"generate.gpus", entry.generate_gpus, ""});
    }
    auto scenario = value_of(io::resolve(draft, library));
    auto workload = Workload::make(scenario);
    std::vector<Plan> plans;
    for (const auto method : entry.methods) {
        plans.push_back(value_of(make_plan(method, scenario, workload)));
    }
    const auto target = entry.target_seconds;
    benchmark::RegisterBenchmark(
        ("simulate/" + entry.name).c_str(),
        [scenario = std::move(scenario), workload = std::move(workload), plans = std::move(plans), target](
            benchmark::State& state) {
            std::size_t tasks = 0;
            for (auto _ : state) {
                tasks = 0;
                for (const auto& plan : plans) {
                    tasks += value_of(simulate(plan, workload, scenario)).graph.tasks.size();
                }
            }
            state.counters["tasks"] = static_cast<double>(tasks);
            state.counters["target_ms"] = target * 1e3;
        })
        ->Unit(benchmark::kMillisecond)
        ->MinTime(kMinSeconds)
        ->Repetitions(kRepetitions);
}

}  // namespace
}  // namespace refit::bench

int main(int argc, char** argv) {
    const auto library = refit::io::Library::open(REFIT_DATA_DIR).value();
    for (const auto& entry : refit::bench::cases()) {
        refit::bench::add(entry, library);
    }
    return refit::bench::run_all(argc, argv);
}
