// SPDX-License-Identifier: Apache-2.0
// Whole runs of the flow engine on the lists of tests/golden/flows, plain and by classes of alike flows, and
// on a million flows of the same pattern as W3m. SimGrid takes 14.9 s CPU for W1, 0.38 s for W2 and W2c, 283
// s for W3s, 188 s for W3m and 134 s for W3c (docs/flows.md).
#include <array>
#include <string>

#include <benchmark/benchmark.h>

#include "../simulator/golden_flows.hpp"
#include "medians.hpp"
#include "refit/flow_run.hpp"

namespace refit::bench {
namespace {

constexpr int kRepetitions = 5;
constexpr double kMinSeconds = 0.02;

/// Sources each send a slice of their own size to some positions in each of eight replicas, over NICs of 50
/// GB/s: the pattern of the lists W2, W3m and W4m.
FlowNetwork refit_pattern(std::uint32_t sources, std::uint32_t positions) {
    constexpr std::uint32_t kReplicas = 8;
    const auto places = sources / kReplicas;
    FlowNetwork network;
    network.reserve(
        std::size_t{sources} * positions * kReplicas, std::size_t{2} * sources * positions * kReplicas, 0);
    for (std::uint32_t port = 0; port < 2 * sources; ++port) {
        network.add_link(50e9);
    }
    for (std::uint32_t source = 0; source < sources; ++source) {
        const auto bytes = static_cast<double>((16U << 20U) + source * 6007);
        for (std::uint32_t j = 0; j < positions; ++j) {
            const auto place = (source * positions + j) % places;
            for (std::uint32_t replica = 0; replica < kReplicas; ++replica) {
                network.add_flow({.bytes = bytes},
                                 std::array{LinkUse{source}, LinkUse{sources + replica * places + place}});
            }
        }
    }
    return network;
}

void add(const std::string& name, const FlowNetwork& network, bool has_quotient) {
    benchmark::RegisterBenchmark(
        (std::string{"run_flows/"} + name + (has_quotient ? "/by_classes" : "")).c_str(),
        [network, has_quotient](benchmark::State& state) {
            for (auto _ : state) {
                benchmark::DoNotOptimize(run_flows(network, {.has_quotient = has_quotient}));
            }
            state.counters["flows"] = network.flows();
        })
        ->Unit(benchmark::kMillisecond)
        ->MinTime(kMinSeconds)
        ->Repetitions(kRepetitions);
}

}  // namespace
}  // namespace refit::bench

int main(int argc, char** argv) {
    using namespace refit;
    for (const bool has_quotient : {false, true}) {
        for (const std::string name : {"W1", "W2", "W2c", "W2e", "W3s", "W3m", "W3c"}) {
            bench::add(name, testing_support::golden_network(name), has_quotient);
        }
        bench::add("1048576", bench::refit_pattern(8192, 16), has_quotient);
    }
    return bench::run_all(argc, argv);
}
