// SPDX-License-Identifier: Apache-2.0
// Planning: all methods of one refit, the optimal plan and the bounds of large ones.
#include <array>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "../planner/study.hpp"
#include "medians.hpp"
#include "refit/bound.hpp"
#include "refit/io/library.hpp"
#include "refit/methods.hpp"
#include "refit/optimal.hpp"

namespace refit::bench {
namespace {

constexpr int kRepetitions = 5;
constexpr double kMinSeconds = 0.02;

Scenario scenario_of(const std::string& name, const std::string& gpus) {
    const auto library = io::Library::open(REFIT_DATA_DIR).value();
    auto draft = library.scenario(name).value();
    if (!gpus.empty()) {
        draft.apply({"train.gpus", gpus, ""});
        draft.apply({"generate.gpus", gpus, ""});
    }
    auto scenario = io::resolve(draft, library);
    if (!scenario) {
        std::cerr << scenario.error().front().message << "\n";
        std::exit(1);
    }
    return std::move(*scenario);
}

template <class Work>
void add(const std::string& name, double target_seconds, Work work) {
    benchmark::RegisterBenchmark(name.c_str(),
                                 [work = std::move(work), target_seconds](benchmark::State& state) {
                                     for (auto _ : state) {
                                         work();
                                     }
                                     rusage usage{};
                                     ::getrusage(RUSAGE_SELF, &usage);
                                     state.counters["target_s"] = target_seconds;
                                     state.counters["peak_MB"] = static_cast<double>(usage.ru_maxrss) * 1024.0 / 1e6;
                                 })
        ->Unit(benchmark::kMillisecond)
        ->MinTime(kMinSeconds)
        ->Repetitions(kRepetitions);
}

/// Source of the targets: a slider feels live at a quarter of a second; a study's own planner took 1 to 2 s for the same
/// 131,072 hops.
void add_all() {
    static const auto deepseek = scenario_of("deepseek-v3-h100", "");
    add("all_methods/deepseek_v3_256_256", 0.25, [] {
        const auto workload = Workload::make(deepseek);
        for (const auto method : {Method::kGatherBroadcast, Method::kHybrid, Method::kDirect, Method::kStriped, Method::kM2n,
                                  Method::kOptimal}) {
            benchmark::DoNotOptimize(make_plan(method, deepseek, workload));
        }
    });
    static const auto rows = study::cases();
    static const auto& kimi = *std::ranges::find(rows, "KimiAllStagesNodes", &study::Case::name);
    static const auto slices = SliceTable::make(study::workload_of(kimi.layout), kimi.layout.trainers());
    add("optimal/131072_hops", 0.1, [] { benchmark::DoNotOptimize(optimal_relays(slices, kimi.fabric)); });
    add("bounds/131072_hops", 0.01, [] { benchmark::DoNotOptimize(lower_bound(slices, kimi.fabric)); });
    static const auto large = scenario_of("kimi-k3-h100", "2048");
    add("optimal/kimi_k3_2048_2048", 2.0, [] {
        benchmark::DoNotOptimize(make_plan(Method::kOptimal, large, Workload::make(large)));
    });
    add("direct_by_classes/kimi_k3_2048_2048", 0.2, [] {
        benchmark::DoNotOptimize(make_plan(Method::kDirect, large, Workload::make(large)));
    });
}

}  // namespace
}  // namespace refit::bench

int main(int argc, char** argv) {
    refit::bench::add_all();
    return refit::bench::run_all(argc, argv);
}
