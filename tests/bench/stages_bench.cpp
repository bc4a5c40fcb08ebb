// SPDX-License-Identifier: Apache-2.0
// The steps of a comparison, one by one, within this process.
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <utility>

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "medians.hpp"
#include "refit/bound.hpp"
#include "refit/inventory.hpp"
#include "refit/io/hugging_face.hpp"
#include "refit/io/library.hpp"
#include "refit/loads.hpp"
#include "refit/methods.hpp"
#include "refit/workload.hpp"
#include "scenarios.hpp"
#include "value_of.hpp"

namespace refit::bench {
namespace {

constexpr int kRepetitions = 5;
constexpr double kMinSeconds = 0.02;

Scenario scenario_of(const Case& entry, const io::Library& library) {
    auto draft = value_of(library.scenario(entry.scenario));
    if (!entry.train_gpus.empty()) {
        draft.apply({"train.gpus", entry.train_gpus, ""});
        draft.apply({"generate.gpus", entry.generate_gpus, ""});
    }
    return value_of(io::resolve(draft, library));
}

void add(const std::string& step, const Case& entry, std::function<void()> work) {
    benchmark::RegisterBenchmark((step + "/" + entry.name).c_str(),
                                 [work = std::move(work)](benchmark::State& state) {
                                     for (auto _ : state) {
                                         work();
                                     }
                                 })
        ->Unit(benchmark::kMillisecond)
        ->MinTime(kMinSeconds)
        ->Repetitions(kRepetitions);
}

/// What the benchmarks of one case look at.
struct Material {
    Facts facts;
    Scenario scenario;
    Workload workload;
};

void add_method(Method method, const Case& entry, const Material& material) {
    const std::string name{name_of(method)};
    add("make_plan/" + name, entry, [&material, method] {
        benchmark::DoNotOptimize(make_plan(method, material.scenario, material.workload));
    });
    add("make_loads/" + name,
        entry,
        [&material, plan = value_of(make_plan(method, material.scenario, material.workload))] {
            benchmark::DoNotOptimize(make_loads(plan, material.scenario.cluster));
        });
}

/// Inventory and both distributions, from the facts of the model's file to who holds what on either side, as
/// one step with what it may take.
void add_who_holds_what(const Case& entry, const Material& material) {
    constexpr double kTargetSeconds = 0.2;
    constexpr double kTargetMegabytes = 200.0;
    const auto work = [&material](benchmark::State& state) {
        for (auto _ : state) {
            auto scenario = material.scenario;
            scenario.model = value_of(Inventory::make(scenario.model.id(), material.facts));
            benchmark::DoNotOptimize(Workload::make(scenario));
        }
        rusage usage{};
        ::getrusage(RUSAGE_SELF, &usage);
        state.counters["peak_MB"] =
            static_cast<double>(usage.ru_maxrss) * 1024.0 / 1e6;  // ru_maxrss is in KiB
        state.counters["target_s"] = kTargetSeconds;
        state.counters["target_MB"] = kTargetMegabytes;
    };
    benchmark::RegisterBenchmark(("who_holds_what/" + entry.name).c_str(), work)
        ->Unit(benchmark::kMillisecond)
        ->MinTime(kMinSeconds)
        ->Repetitions(kRepetitions);
}

void add_case(const Case& entry, const Material& material) {
    add_who_holds_what(entry, material);

    add("Inventory::make", entry, [&material] {
        benchmark::DoNotOptimize(Inventory::make("model", material.facts));
    });
    add("Workload::make", entry, [&material] {
        benchmark::DoNotOptimize(Workload::make(material.scenario));
    });
    add("lower_bound", entry, [&material] {
        const auto& [facts, scenario, workload] = material;
        benchmark::DoNotOptimize(lower_bound(SliceTable::make(workload, scenario.cluster.train_gpus()),
                                             Fabric{scenario.cluster, port_rates(scenario.cluster, 1.0, 1.0)}));
    });
    for (const auto method : {Method::kGatherBroadcast, Method::kHybrid, Method::kDirect, Method::kStriped, Method::kOptimal}) {
        add_method(method, entry, material);
    }
}

}  // namespace
}  // namespace refit::bench

int main(int argc, char** argv) {
    using namespace refit;
    const auto library = bench::value_of(io::Library::open(REFIT_DATA_DIR));
    std::vector<bench::Material> materials;
    materials.reserve(bench::kCases.size());  // the benchmarks hold references
    for (const auto& entry : bench::kCases) {
        auto scenario = bench::scenario_of(entry, library);
        auto facts = bench::value_of(
            io::read_config(std::string{REFIT_DATA_DIR} + "/models/" + scenario.model.id() + ".json"));
        auto workload = Workload::make(scenario);
        materials.push_back({std::move(facts), std::move(scenario), std::move(workload)});
        bench::add_case(entry, materials.back());
    }
    return bench::run_all(argc, argv);
}
