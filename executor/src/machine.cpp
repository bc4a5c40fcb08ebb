// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/machine.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>
#include <thread>

#include <sched.h>

namespace refit::exec {
namespace {

std::optional<std::uint64_t> number_in(const char* file) {
    std::ifstream stream{file};
    std::uint64_t value = 0;
    return stream >> value ? std::optional{value} : std::nullopt;
}

/// A line "NAME:   123 kB" of /proc/meminfo. Unit: byte.
std::uint64_t memory_line(const std::string& name) {
    std::ifstream stream{"/proc/meminfo"};
    for (std::string word; stream >> word;) {
        std::uint64_t kibibytes = 0;
        if (word == name && stream >> kibibytes) {
            return kibibytes * 1024;
        }
    }
    return std::numeric_limits<std::uint64_t>::max();
}

std::string processor_name() {
    std::ifstream stream{"/proc/cpuinfo"};
    for (std::string line; std::getline(stream, line);) {
        const auto colon = line.find(": ");
        if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
            return line.substr(colon + 2);
        }
    }
    return {};
}

std::uint32_t own_cores() {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof(cores), &cores) == 0) {
        return static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&cores)));
    }
    return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace

Machine this_machine() {
    Machine machine;
    machine.cores = own_cores();
    machine.processor = processor_name();
    auto memory = memory_line("MemTotal:");
    auto available = memory_line("MemAvailable:");
    if (const auto limit = number_in("/sys/fs/cgroup/memory.max")) {
        memory = std::min(memory, *limit);
        const auto used = number_in("/sys/fs/cgroup/memory.current").value_or(0);
        available = std::min(available, *limit - std::min(used, *limit));
    }
    machine.memory = Bytes{memory};
    machine.available = Bytes{available};
    return machine;
}

std::string describe(const Machine& machine) {
    char memory[32];
    std::snprintf(memory,
                  sizeof(memory),
                  "%.1f GiB",
                  machine.memory.as_double() / Bytes{std::uint64_t{1} << 30U}.as_double());
    return std::to_string(machine.cores) + (machine.cores == 1 ? " core, " : " cores, ") + memory +
           (machine.processor.empty() ? "" : ", " + machine.processor);
}

}  // namespace refit::exec
