// SPDX-License-Identifier: Apache-2.0
#include "simulate_flows.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include <sys/resource.h>

#include "refit/flow_run.hpp"
#include "refit/io/flow_list.hpp"
#include "session.hpp"

namespace refit::cli {
namespace {

constexpr double kMostTolerance = 0.1;

double cpu_seconds() {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double peak_bytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) * 1024.0;
}

Result<FlowNetwork> read(const std::string& path) {
    errno = 0;
    std::ifstream file{path};
    if (!file) {
        const auto why =
            errno == 0 ? std::string{"it cannot be opened"} : std::generic_category().message(errno);
        return fail(ErrorCode::kIo, "read", "cannot read '" + path + "': " + why, path);
    }
    return io::read_flow_list(file, path);
}

/// A line for each time, so that it reads back as the same double.
std::string lines_of(const std::vector<double>& times) {
    constexpr int kDigits = 17;
    constexpr std::size_t kMostOfALine = 24;
    std::string text;
    text.reserve(times.size() * kMostOfALine);
    std::array<char, 32> line{};
    for (const auto time : times) {
        const auto written =
            std::to_chars(line.data(), line.data() + line.size(), time, std::chars_format::general, kDigits);
        text.append(line.data(), written.ptr);
        text += '\n';
    }
    return text;
}

void tell(const FlowRun& run, double read_seconds, double run_seconds, const Options& options) {
    const auto peak = peak_bytes();
    const auto flows = run.end.size();
    std::array<char, 256> text{};
    std::snprintf(
        text.data(),
        text.size(),
        "refit: %zu flows over at %.6g s, %llu events, in %.3f s of CPU time (and %.3f s to read them), "
        "%.1f MB at most",
        flows,
        run.makespan,
        static_cast<unsigned long long>(run.events),
        run_seconds,
        read_seconds,
        peak / 1e6);
    std::cerr << text.data() << "\n";
    if (options.fast) {
        std::cerr << "refit: approximate (--fast " << *options.fast << "): the last bytes of a flow, at most "
                  << 100.0 * *options.fast << " % of it, slow no other flow; exact times for all else\n";
    }
}

}  // namespace

int run_simulate_flows(const Options& options) {
    if (!options.scenario.empty() || !options.fields.empty()) {
        return usage_error("either a scenario or --flows, not both");
    }
    if (options.format != Format::kTable) {
        return usage_error("--flows writes a time a line; -o does not apply");
    }
    if (options.fast && !(*options.fast > 0.0 && *options.fast <= kMostTolerance)) {
        return usage_error("--fast takes a part of the time above 0 and up to 0.1, for example 0.001");
    }
    const auto begin = cpu_seconds();
    const auto network = read(options.flows);
    if (!network) {
        return refuse(network.error(), options);
    }
    const auto read_end = cpu_seconds();
    FlowOptions how;
    how.has_quotient = options.has_quotient;
    how.tolerance = options.fast.value_or(0.0);
    const auto run = run_flows(*network, how);
    if (!run) {
        return refuse(run.error(), options);
    }
    const auto run_end = cpu_seconds();
    const auto status = write_output(lines_of(run->end), options);
    if (!options.is_quiet) {
        tell(*run, read_end - begin, run_end - read_end, options);
    }
    return status;
}

}  // namespace refit::cli
