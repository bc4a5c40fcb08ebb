// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/staged_program.hpp"

#include <algorithm>
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

StagedWave staged_wave(const program::Wave& wave,
                       const RankView& view,
                       std::uint64_t staging,
                       std::uint64_t zero_copy,
                       std::uint64_t& used) {
    StagedWave result;
    for (std::size_t index = 0; index < wave.operations.size(); ++index) {
        const Operation& operation = wave.operations[index];
        if (operation.bytes == 0) {
            continue;
        }
        if (const auto place = place_in_regions(operation, view, zero_copy)) {
            result.messages.push_back({index, *place, operation.bytes});
            continue;
        }
        const std::uint64_t message = staging + used;
        used += aligned(operation.bytes);
        result.messages.push_back({index, message, operation.bytes});
        const MessageCopies copies = copies_of(operation, view, message);
        result.packs.insert(result.packs.end(), copies.gives.begin(), copies.gives.end());
        result.unpacks.insert(result.unpacks.end(), copies.takes.begin(), copies.takes.end());
    }
    return result;
}

}  // namespace

std::uint64_t staging_bytes(const program::RankProgram& program,
                            const RankView& view,
                            std::uint64_t zero_copy) {
    std::uint64_t most = 0;
    for (const program::Wave& wave : program.waves) {
        std::uint64_t used = 0;
        for (const Operation& operation : wave.operations) {
            used += place_in_regions(operation, view, zero_copy) ? 0 : aligned(operation.bytes);
        }
        most = std::max(most, used);
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
        std::uint64_t used = 0;
        waves.push_back(staged_wave(wave, view, staging, zero_copy, used));
    }
    return waves;
}

}  // namespace refit::exec
