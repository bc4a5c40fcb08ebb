// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "device.hpp"
#include "refit/exec/message_layout.hpp"
#include "refit/exec/rank_storage.hpp"
#include "refit/program.hpp"
#include "refit/workload.hpp"

namespace refit::exec {

/// A rank's buffers in the memory of a device: sources, two destinations, scratch.
struct DeviceMemory {
    std::array<std::uint64_t, program::kArenas> arenas{};  ///< Of the destinations, the shadow.
    std::uint64_t served = 0;
    std::uint64_t verdicts =
        0;  ///< An ElementVerdict for each region, where comparisons leave what they find.

    [[nodiscard]] RankView view(const program::RankProgram& program) const {
        return {program.regions, arenas};
    }
    void flip() noexcept {
        std::swap(arenas[static_cast<std::size_t>(program::Arena::kDestination)], served);
    }
};

[[nodiscard]] Result<DeviceMemory> allocate(Device& device, const program::RankProgram& program);

/// The elements of a region that begins at `memory` + its offset, with the values of a version.
[[nodiscard]] RegionElements elements_of(const Workload& workload,
                                         const program::Region& region,
                                         std::uint64_t memory,
                                         std::uint64_t version);

/// Begins to write the values of a version to a rank's sources, and their complement to its shadow
/// destinations.
[[nodiscard]] Result<void> begin_fill(Device& device,
                                      const program::RankProgram& program,
                                      const Workload& workload,
                                      const DeviceMemory& memory,
                                      std::uint64_t version);
/// Begins to write the values of a version to the served destinations.
[[nodiscard]] Result<void> begin_fill_served(Device& device,
                                             const program::RankProgram& program,
                                             const Workload& workload,
                                             const DeviceMemory& memory,
                                             std::uint64_t version);
/// Begins to compare all destinations, the shadow or those that are served, with the values of a version.
[[nodiscard]] Result<void> begin_compare(Device& device,
                                         const program::RankProgram& program,
                                         const Workload& workload,
                                         const DeviceMemory& memory,
                                         bool is_served,
                                         std::uint64_t version);
/// What the comparison found. Pre: the device is idle.
[[nodiscard]] Result<Compared> finish_compare(Device& device,
                                              const program::RankProgram& program,
                                              const Workload& workload,
                                              const DeviceMemory& memory,
                                              bool is_served,
                                              std::uint64_t version);

}  // namespace refit::exec
