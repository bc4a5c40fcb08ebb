// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "refit/units.hpp"

namespace refit::exec {

/// The machine that this process runs on, as far as it may use it.
struct Machine {
    std::uint32_t cores = 1;
    std::string processor;  ///< As /proc/cpuinfo names it; may be empty.
    Bytes memory;           ///< Of it, or of the control group where that has less.
    Bytes available;        ///< What may still be allocated without swapping.
};

/// Source: /proc/meminfo, the control group's memory.max and memory.current, the thread's affinity.
[[nodiscard]] Machine this_machine();

/// "2 cores, 24.0 GiB, Intel Xeon …".
[[nodiscard]] std::string describe(const Machine& machine);

}  // namespace refit::exec
