// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "refit/exec/strided_copy.hpp"
#include "refit/program.hpp"

namespace refit::exec::host {

/// A copy from a region of one rank to a region of another. Offsets count from the beginning of the arenas.
struct Copy {
    StridedCopy shape;
    std::uint32_t taker = 0;
    program::Arena from = program::Arena::kSource;
    program::Arena to = program::Arena::kDestination;
};

/// Copies [first, last) that one rank gives in one wave.
struct Task {
    std::uint32_t giver = 0;
    std::uint32_t wave = 0;
    std::uint32_t first = 0;
    std::uint32_t last = 0;
};

/// What threads do to run the programs of all ranks: tasks by wave, so that any two of a wave may run at
/// once.
struct Work {
    std::vector<Copy> copies;
    std::vector<Task> tasks;                    ///< By wave.
    std::vector<std::uint32_t> first_task;      ///< By wave; one more at the end.
    std::vector<std::uint32_t> stages;          ///< By wave.
    std::vector<std::uint64_t> bytes;           ///< By wave.
    std::vector<std::vector<bool>> takes_part;  ///< By rank and wave.
};

/// Source bytes that a thread reads before it goes on with the next destination.
/// Source: half of a core's second-level cache at most; flat between 32 KiB and 512 KiB (docs/executor.md).
inline constexpr std::uint64_t kTile = 128U << 10U;

/// Each giver's copies of a wave in the order of its memory, by tiles, cut into tasks for so many threads.
/// Pre: the programs are of one schedule, by rank.
[[nodiscard]] Work work_of(const std::vector<program::RankProgram>& programs, std::uint32_t threads);

}  // namespace refit::exec::host
