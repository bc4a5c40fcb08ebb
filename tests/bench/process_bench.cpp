// SPDX-License-Identifier: Apache-2.0
// The program as a user runs it: wall time and peak memory of whole processes.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "medians.hpp"
#include "scenarios.hpp"

namespace refit::bench {
namespace {

constexpr int kRepetitions = 25;

struct Cost {
    double seconds;
    double megabytes;
};

/// Runs the program with its output thrown away; nothing where it fails.
std::optional<Cost> run_once(std::vector<std::string> words) {
    std::vector<char*> pointers;
    for (auto& word : words) {
        pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    const auto start = std::chrono::steady_clock::now();
    const auto child = ::fork();
    if (child == 0) {
        ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
        ::execv(pointers[0], pointers.data());
        ::_exit(127);
    }
    int status = 0;
    rusage usage{};
    if (child < 0 || ::wait4(child, &status, 0, &usage) != child || !WIFEXITED(status) ||
        WEXITSTATUS(status) != 0) {
        return std::nullopt;
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return Cost{elapsed.count(), static_cast<double>(usage.ru_maxrss) * 1024.0 / 1e6};  // ru_maxrss is in KiB
}

std::vector<std::string> command_of(const Case& entry) {
    std::vector<std::string> words{REFIT_PROGRAM, "compare", entry.scenario};
    if (!entry.train_gpus.empty()) {
        words.insert(words.end(), {"--train-gpus", entry.train_gpus, "--gen-gpus", entry.generate_gpus});
    }
    return words;
}

void compare_process(benchmark::State& state, const Case& entry) {
    const auto command = command_of(entry);
    for (auto _ : state) {
        const auto cost = run_once(command);
        if (!cost) {
            state.SkipWithError("the program failed");
            return;
        }
        state.SetIterationTime(cost->seconds);
        state.counters["peak_MB"] = cost->megabytes;
    }
    state.counters["target_s"] = entry.target_seconds;
    state.counters["target_MB"] = entry.target_megabytes;
}

}  // namespace
}  // namespace refit::bench

int main(int argc, char** argv) {
    for (const auto& entry : refit::bench::kCases) {
        const auto name = "refit_compare/" + entry.name;
        benchmark::RegisterBenchmark(
            name.c_str(), [&entry](benchmark::State& state) { refit::bench::compare_process(state, entry); })
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond)
            ->Iterations(1)
            ->Repetitions(refit::bench::kRepetitions);
    }
    return refit::bench::run_all(argc, argv);
}
