// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "../executor/small_jobs.hpp"

namespace refit::testing_support {

/// A refit of one tensor that SMPI and the simulator both time.
struct SmpiCase {
    std::string name;
    study::Layout layout;
    std::uint32_t gpus_per_node = 8;
};

/// Pieces that direct sends are 32 KiB and more, but where the name says "small".
inline std::vector<SmpiCase> smpi_cases() {
    return {
        // 16 x 64 x 2048 BF16, 4 MiB: 8 x 8 pieces of 64 KiB.
        {"ep8-tp8", {{16, 64, 2048}, 8, 1, 1, 1, 8, 1}, 8},
        {"large-ep4-tp2dp8", {{8, 64, 65536}, 4, 1, 1, 1, 2, 8}, 4},
        // One stage of 4 trainers against 8 x 2: a sender's problem.
        {"ep4-tp2dp8", {{8, 64, 16384}, 4, 1, 1, 1, 2, 8}, 4},
        {"ep8-tp4dp4", {{8, 128, 8192}, 8, 1, 1, 1, 4, 4}, 8},
        // Replicas side by side in a node.
        {"ep8-tp8dp2-wide", {{16, 64, 8192}, 8, 1, 1, 1, 8, 2}, 16},
        {"dense-tp2x2-tp4dp2", {{2048, 4096}, 2, 2, 1, 1, 4, 2}, 4},
        {"large-ep8-tp4dp4", {{8, 128, 32768}, 8, 1, 1, 1, 4, 4}, 8},
        // 8 x 64 x 96 BF16: pieces of 1536 B.
        {"small-ep8-tp8", {{8, 64, 96}, 8, 1, 1, 1, 8, 1}, 8},
    };
}

inline SmallJob smpi_job(const SmpiCase& one, Method method) {
    return job_of(one.name, one.layout, method, one.gpus_per_node);
}

/// All that may go at once goes at once.
inline program::Settings one_wave() {
    program::Settings settings;
    settings.most_operations = 1U << 20U;
    settings.wave_bytes = Bytes{std::uint64_t{1} << 50U};
    settings.least_chunk = Bytes{std::uint64_t{32} << 10U};
    return settings;
}

}  // namespace refit::testing_support
