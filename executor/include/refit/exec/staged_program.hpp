// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "refit/exec/message_layout.hpp"
#include "refit/program.hpp"

namespace refit::exec {

/// Where one end of an operation has its message.
struct StagedMessage {
    std::size_t operation = 0;  ///< Index into the wave's.
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    bool operator==(const StagedMessage&) const = default;
};

/// A wave of one rank in three steps: pack, move messages, unpack.
struct StagedWave {
    std::vector<StridedCopy> packs;
    std::vector<StagedMessage> messages;  ///< Of all operations that have bytes, in their order.
    std::vector<StridedCopy> unpacks;
};

/// From this size on, what lies in memory as one stretch is sent and received where it lies.
/// Source: NCCL M2N Reshard takes 256 KiB; below, a pack kernel that runs anyway costs less than another
/// registered buffer.
inline constexpr std::uint64_t kZeroCopyBytes = std::uint64_t{256} << 10U;

/// Operations of a wave by their places in it, ascending, with their messages in staging from `staging` on
/// where they are not moved where they lie.
[[nodiscard]] StagedWave staged_operations(const program::Wave& wave,
                                           std::span<const std::uint32_t> operations,
                                           const RankView& view,
                                           std::uint64_t staging,
                                           std::uint64_t zero_copy = kZeroCopyBytes);
/// Bytes of staging that they take.
[[nodiscard]] std::uint64_t staging_bytes(const program::Wave& wave,
                                          std::span<const std::uint32_t> operations,
                                          const RankView& view,
                                          std::uint64_t zero_copy = kZeroCopyBytes);

/// Bytes of staging that a rank's program takes: what its busiest wave packs and unpacks.
[[nodiscard]] std::uint64_t staging_bytes(const program::RankProgram& program,
                                          const RankView& view,
                                          std::uint64_t zero_copy = kZeroCopyBytes);

/// The program with all its messages in place. Pre: `staging` is the address of so many bytes, and a multiple
/// of 256.
[[nodiscard]] std::vector<StagedWave> staged_waves(const program::RankProgram& program,
                                                   const RankView& view,
                                                   std::uint64_t staging,
                                                   std::uint64_t zero_copy = kZeroCopyBytes);

}  // namespace refit::exec
