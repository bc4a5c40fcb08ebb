// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "refit/plan.hpp"
#include "refit/report.hpp"
#include "refit/scenario.hpp"
#include "refit/workload.hpp"

namespace refit {

/// What a refit needs memory for beside the weights.
enum class MemoryCause : std::uint8_t {
    kPackLists,      ///< Gathered tensors that wait in a list to be packed.
    kPacks,          ///< The same, packed and on their way.
    kGatherOutput,   ///< Gathered by the same export task, not in a list yet.
    kReceivedPacks,  ///< Packs that a rank receives.
    kStacks,         ///< A trainer's shards, its experts stacked.
    kStaging,        ///< A contiguous copy of them to send from.
    kRegions,        ///< Where a receiver puts what comes point to point.
    kMessages,       ///< Relayed messages, packed to be sent, passed on or taken apart.
    kShadowCopy,     ///< A second copy of the receiver's weights.
};

/// "pack lists", "packs", "gather output", "received packs", "stacked shards", "staging", "regions",
/// "messages", "shadow copy".
[[nodiscard]] std::string_view name_of(MemoryCause cause) noexcept;

struct MemoryUse {
    MemoryCause cause = MemoryCause::kPacks;
    Bytes bytes;
    bool operator==(const MemoryUse&) const = default;
};

/// The rank of a side that needs most in a stage, the first of equals, at its worst moment there.
struct StageMemory {
    std::size_t stage =
        0;  ///< Index in the plan. Gather and broadcast are one pipeline, shown at the gather.
    RankId rank;
    std::vector<MemoryUse> uses;  ///< None of 0 bytes.

    [[nodiscard]] Bytes total() const;
    bool operator==(const StageMemory&) const = default;
};

/// What a plan needs, by side and stage. Stages in which a side needs nothing are left out.
struct MemoryAccount {
    std::vector<StageMemory> train;
    std::vector<StageMemory> generation;

    /// The stage of a side that needs most, the first of equals; nothing where none needs anything.
    [[nodiscard]] static const StageMemory* worst(const std::vector<StageMemory>& side) noexcept;
    [[nodiscard]] PeakBytes peak() const;
    bool operator==(const MemoryAccount&) const = default;
};

/// Pack size that the engine aims for on a GPU of this much memory.
/// Source: NeMo RL packed_tensor.py: the ratio of the GPU's memory, capped.
[[nodiscard]] Bytes pack_target(const Engine& engine, Bytes gpu_memory);

/// Memory that the plan needs beside the weights themselves, by cause. While packs are in flight each root
/// holds them twice (list and packed), with the rest of what an export task gathered, and whoever receives
/// one once. While bulk stages are in flight each receiver holds one region a stream, and each trainer its
/// stacked shards and a staged copy. A rank that sends, passes on or receives relayed messages packs one a
/// stream. Source: NeMo RL packed_tensor.py, megatron_policy_worker.py, vllm_backend.py; docs/cost_model.md.
[[nodiscard]] MemoryAccount account_memory(const Plan& plan,
                                           const Scenario& scenario,
                                           const Workload& workload);

/// The worst moments of both sides.
[[nodiscard]] PeakBytes peak_bytes(const Plan& plan, const Scenario& scenario, const Workload& workload);

/// The largest destination region of the bulk classes: what one more stream costs a receiver.
[[nodiscard]] Bytes largest_region(const Plan& plan, const Workload& workload);

}  // namespace refit
