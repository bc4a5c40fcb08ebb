// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "refit/cluster.hpp"
#include "refit/program_schedule.hpp"

namespace refit::testing_support {

/// The first rank of each NVLink domain.
[[nodiscard]] inline std::vector<std::uint32_t> starts_of(const Cluster& cluster) {
    std::vector<std::uint32_t> starts;
    for (std::uint32_t rank = 0; rank < cluster.gpus(); ++rank) {
        if (rank == 0 || cluster.domain_of(RankId{rank}) != cluster.domain_of(RankId{rank - 1})) {
            starts.push_back(rank);
        }
    }
    return starts;
}

/// Runs all ranks' groups as a device that runs one group at a time would: a message is moved when both its
/// ends stand in their ranks' present groups, a rank goes on when all of its group's are. Returns what is
/// wrong, or nothing: ends that disagree, messages of a pair or collectives of a group in another order on
/// the other side (NCCL knows no tags), a wait for a later group, ranks that wait for each other for ever.
[[nodiscard]] std::string fault_of_groups(const program::Schedule& schedule,
                                          std::span<const std::uint32_t> domains);

}  // namespace refit::testing_support
