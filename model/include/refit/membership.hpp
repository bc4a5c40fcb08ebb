// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "refit/engine_constants.hpp"
#include "refit/layout.hpp"
#include "refit/result.hpp"

namespace refit {

/// What changing the members of NCCL communicators costs. Sources: data/membership, docs/membership.md.
struct MembershipConstants {
    Constant shrink;               ///< To leave ranks out of a communicator. Unit: s.
    Constant shrink_per_gpu;       ///< Added for each rank that it had. Unit: s.
    Constant grow;                 ///< To add ranks to one. Unit: s.
    Constant grow_per_gpu;         ///< Added for each rank that it then has. Unit: s.
    Constant rebuild;              ///< To give one up and make another. Unit: s.
    Constant rebuild_per_gpu;      ///< Added for each rank that it then has. Unit: s.
    Constant setup_after_shrink;   ///< By how much its first use then takes longer. Unit: s.
    Constant setup_after_grow;     ///< Unit: s.
    Constant setup_after_rebuild;  ///< Unit: s.
    std::uint32_t gpus_least = 1;  ///< GPUs of the smallest job that was measured.
    std::uint32_t gpus_most = 1;   ///< Of the largest.
    bool operator==(const MembershipConstants&) const = default;
};

/// GPUs that go or come together, neighbours by rank.
struct GpuRun {
    std::uint32_t gpus = 0;   ///< Range: at least 1.
    std::uint32_t nodes = 0;  ///< 0 where they were counted in GPUs.
    bool operator==(const GpuRun&) const = default;
};

/// Reads "1node", "2nodes", "8gpu" or "16gpus".
/// Errors: kInvalidInput for a missing or unknown unit, and for a number outside 1 to 2^20; each tells what
/// would do.
[[nodiscard]] Result<GpuRun> parse_gpu_run(std::string_view text, std::uint32_t gpus_per_node);

/// "2 nodes (16 GPUs)", "8 GPUs".
[[nodiscard]] std::string describe(const GpuRun& run);

/// GPUs of the smallest set of generators that serves alone: an engine, or the engines over which experts are
/// spread.
[[nodiscard]] std::uint32_t replica_gpus(const GenerateLayout& layout) noexcept;

/// How the generators of a job change.
struct MembershipChange {
    std::uint32_t replica_gpus = 1;
    std::uint32_t replicas_before = 1;
    std::uint32_t lost_replicas = 0;
    std::uint32_t new_replicas = 0;
    std::uint32_t idle_gpus = 0;  ///< Healthy ones of lost replicas, and gained ones, in no whole replica.
    GenerateLayout after;

    [[nodiscard]] std::uint32_t replicas_after() const noexcept {
        return replicas_before - lost_replicas + new_replicas;
    }
    bool operator==(const MembershipChange&) const = default;
};

/// A lost GPU takes its replica with it; each run begins with a replica that no other run has touched, so it
/// takes the fewest. Where GPUs come, they and the healthy ones of lost replicas make as many whole replicas
/// as they can. Errors, all at once: kInfeasible where no replica would be left, and where what comes makes
/// no whole replica; each tells what would do.
[[nodiscard]] Result<MembershipChange> change_members(const GenerateLayout& layout,
                                                      std::span<const GpuRun> lost,
                                                      std::span<const GpuRun> gained,
                                                      std::uint32_t gpus_per_node);

}  // namespace refit
