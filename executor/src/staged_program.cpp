// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/staged_program.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace refit::exec {
namespace {

using program::Operation;
using program::OperationKind;

/// Where a message lies as one stretch of regions, if it is large enough to be moved from or to there.
std::optional<std::uint64_t> place_in_regions(const Operation& operation,
                                              const RankView& view,
                                              std::uint64_t zero_copy) {
    if (operation.bytes < zero_copy || operation.kind == OperationKind::kAllGather) {
        return std::nullopt;
    }
    const bool gives =
        operation.kind == OperationKind::kSend || (operation.is_collective() && operation.place == 0);
    const MessageSide side = gives ? MessageSide::kDestination : MessageSide::kSource;
    MessageCopies copies = copies_of(operation, view, 0);
    const auto ordered = in_message_order(
        gives ? std::move(copies.gives) : std::move(copies.takes), side, 0, {0, operation.bytes});
    return ordered ? contiguous_memory(*ordered, side) : std::nullopt;
}

std::uint64_t aligned(std::uint64_t bytes) {
    return (bytes + program::kAlignment - 1) / program::kAlignment * program::kAlignment;
}

std::vector<std::uint32_t> all_of(const program::Wave& wave) {
    std::vector<std::uint32_t> places(wave.operations.size());
    std::iota(places.begin(), places.end(), 0U);
    return places;
}

}  // namespace

StagedWave staged_operations(const program::Wave& wave,
                             std::span<const std::uint32_t> operations,
                             const RankView& view,
                             std::uint64_t staging,
                             std::uint64_t zero_copy) {
    StagedWave result;
    for (const std::uint32_t index : operations) {
        const Operation& operation = wave.operations[index];
        if (operation.bytes == 0) {
            continue;
        }
        if (const auto place = place_in_regions(operation, view, zero_copy)) {
            result.messages.push_back({index, *place, operation.bytes});
            continue;
        }
        result.messages.push_back({index, staging, operation.bytes});
        const MessageCopies copies = copies_of(operation, view, staging);
        staging += aligned(operation.bytes);
        result.packs.insert(result.packs.end(), copies.gives.begin(), copies.gives.end());
        result.unpacks.insert(result.unpacks.end(), copies.takes.begin(), copies.takes.end());
    }
    return result;
}

std::uint64_t staging_bytes(const program::Wave& wave,
                            std::span<const std::uint32_t> operations,
                            const RankView& view,
                            std::uint64_t zero_copy) {
    std::uint64_t used = 0;
    for (const std::uint32_t index : operations) {
        const Operation& operation = wave.operations[index];
        used += place_in_regions(operation, view, zero_copy) ? 0 : aligned(operation.bytes);
    }
    return used;
}

std::uint64_t staging_bytes(const program::RankProgram& program,
                            const RankView& view,
                            std::uint64_t zero_copy) {
    std::uint64_t most = 0;
    for (const program::Wave& wave : program.waves) {
        most = std::max(most, staging_bytes(wave, all_of(wave), view, zero_copy));
    }
    return most;
}

std::vector<StagedWave> staged_waves(const program::RankProgram& program,
                                     const RankView& view,
                                     std::uint64_t staging,
                                     std::uint64_t zero_copy) {
    std::vector<StagedWave> waves;
    waves.reserve(program.waves.size());
    for (const program::Wave& wave : program.waves) {
        waves.push_back(staged_operations(wave, all_of(wave), view, staging, zero_copy));
    }
    return waves;
}

}  // namespace refit::exec
