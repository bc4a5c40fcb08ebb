// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "refit/exec/strided_copy.hpp"
#include "refit/program.hpp"

namespace refit::exec {

/// Where the arenas of one rank lie: addresses of whatever device holds them.
using ArenaAddresses = std::array<std::uint64_t, program::kArenas>;

/// A rank's program beside the memory in which it runs.
struct RankView {
    std::span<const program::Region> regions;
    ArenaAddresses arenas{};
};

/// The copies between the regions of a rank and one of its messages.
struct MessageCopies {
    std::vector<StridedCopy> gives;  ///< From regions into the message.
    std::vector<StridedCopy> takes;  ///< From the message into regions.
};

/// How an operation's landings are copied, with a message that begins at address `message`.
[[nodiscard]] MessageCopies copies_of(const program::Operation& operation,
                                      const RankView& rank,
                                      std::uint64_t message);

/// Bytes of a message.
struct MessageRange {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool operator==(const MessageRange&) const = default;
};

/// What the member at `place` of a group gives of a collective's message; parts lie by ascending owner.
[[nodiscard]] MessageRange given_by(const program::Operation& operation, std::uint32_t place);

/// Which side of a copy lies in the message.
enum class MessageSide : std::uint8_t { kSource, kDestination };

/// Copies by ascending place in the message, if each is one stretch of it and together they are exactly
/// `range` of the message that begins at `message`: then a transport can take them one after the other,
/// without staging. Else nothing.
[[nodiscard]] std::optional<std::vector<StridedCopy>> in_message_order(std::vector<StridedCopy> copies,
                                                                       MessageSide side,
                                                                       std::uint64_t message,
                                                                       const MessageRange& range);

/// The address at which copies, in message order, are one stretch of the rank's memory too; else nothing.
[[nodiscard]] std::optional<std::uint64_t> contiguous_memory(std::span<const StridedCopy> ordered,
                                                             MessageSide side);

}  // namespace refit::exec
