// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace refit::bench {

/// Prints one line a benchmark: the medians over its repetitions.
class MedianReporter : public benchmark::ConsoleReporter {
public:
    MedianReporter() : ConsoleReporter{OO_Tabular} {}

    void ReportRuns(const std::vector<Run>& runs) override {
        std::vector<Run> kept;
        std::ranges::copy_if(runs, std::back_inserter(kept), [](const Run& run) {
            return run.error_occurred || run.aggregate_name == "median";
        });
        if (!kept.empty()) {
            ConsoleReporter::ReportRuns(kept);
        }
    }
};

/// Runs what has been registered. Returns the exit code: 1 for options that it does not know.
[[nodiscard]] inline int run_all(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return 1;
    }
    MedianReporter reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    benchmark::Shutdown();
    return 0;
}

}  // namespace refit::bench
