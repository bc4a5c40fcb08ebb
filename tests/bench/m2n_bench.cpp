// SPDX-License-Identifier: Apache-2.0
// NCCL M2N's plan for all ranks of a tensor class. Its own planner takes 265 us for one source rank and 175
// us for one destination rank of ep16-tp32dp8, 76 and 47 us of ep16-tp8dp8, 6 us of tp4-tp4.
#include <array>
#include <cstdlib>
#include <iostream>
#include <string>

#include <benchmark/benchmark.h>

#include "medians.hpp"
#include "refit/m2n.hpp"

namespace refit::bench {
namespace {

constexpr int kRepetitions = 5;
constexpr double kMinSeconds = 0.05;

/// Replicas of neighbouring shards at both ends, the destination after the source.
struct Layout {
    const char* name;
    std::vector<std::uint64_t> shape;
    std::array<std::uint32_t, 2> source;  ///< Replicas, shards.
    std::size_t source_axis;
    std::array<std::uint32_t, 2> destination;
    std::size_t destination_axis;
};

M2nCall call_of(const Layout& layout) {
    const auto tensor = [&](const std::array<std::uint32_t, 2>& axes, std::size_t axis, std::uint32_t first) {
        return M2nTensor{layout.shape,
                         1,
                         {{axes[0], axes[1]}, RankId{first}},
                         {{}, {DtensorPlacement::Kind::kShard, axis, 1}}};
    };
    return {tensor(layout.source, layout.source_axis, 0),
            tensor(layout.destination, layout.destination_axis, layout.source[0] * layout.source[1]),
            0};
}

void add(const Layout& layout) {
    const auto call = call_of(layout);
    if (const auto plan = m2n_plan(call, {}); !plan) {
        std::cerr << layout.name << ": " << plan.error().front().message << "\n";
        std::exit(1);
    }
    benchmark::RegisterBenchmark((std::string{"m2n_plan/"} + layout.name).c_str(),
                                 [call](benchmark::State& state) {
                                     for (auto _ : state) {
                                         benchmark::DoNotOptimize(m2n_plan(call, {}));
                                     }
                                 })
        ->Unit(benchmark::kMicrosecond)
        ->MinTime(kMinSeconds)
        ->Repetitions(kRepetitions);
}

}  // namespace
}  // namespace refit::bench

int main(int argc, char** argv) {
    using refit::bench::Layout;
    for (const auto& layout : {Layout{"tp4-tp4", {1024, 1024}, {1, 4}, 0, {1, 4}, 0},
                               Layout{"ep16-tp8dp8", {256, 2048, 7168}, {1, 16}, 0, {8, 8}, 1},
                               Layout{"ep16x2-tp8dp16", {256, 2048, 7168}, {2, 16}, 0, {16, 8}, 1},
                               Layout{"ep16-tp32dp8", {256, 2048, 7168}, {1, 16}, 0, {8, 32}, 1}}) {
        refit::bench::add(layout);
    }
    return refit::bench::run_all(argc, argv);
}
