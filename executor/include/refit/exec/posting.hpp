// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "refit/program.hpp"

namespace refit::exec {

/// Over which of a rank's communicators a message goes, in the order in which a wave's are begun.
enum class Channel : std::uint8_t {
    kDomain,      ///< Between ranks of one NVLink domain.
    kAll,         ///< Between any two ranks.
    kCollective,  ///< Of a group of the program.
};
inline constexpr std::size_t kChannels = 3;

/// How often a channel's staging is there: while one group's messages are on the wire, the next is packed.
inline constexpr std::uint32_t kSlots = 2;

/// Operations that a rank begins together and that end together, as NCCL's groups do.
/// Invariant: of one wave and one communicator.
struct PostedGroup {
    std::uint32_t wave = 0;
    Channel channel = Channel::kAll;
    std::uint32_t group = program::kNone;   ///< Of the program's groups, for kCollective.
    std::vector<std::uint32_t> operations;  ///< Places in the wave, ascending; all have bytes.
    /// Earlier ones of this list that must be over before this one packs or begins: what they bring it gives,
    /// they use memory that it changes, or they had its slot. At most one a channel: it comes after all
    /// others of its channel.
    std::vector<std::uint32_t> after;
    std::uint32_t slot = 0;  ///< Of its channel's staging. Range: below kSlots.
    bool operator==(const PostedGroup&) const = default;
};

/// The domain of each rank where a communicator for each domain helps; else nothing. It helps where
/// `members`, ascending, are of several domains, and several of one: NCCL gives all pairs of a communicator
/// as many channels as its worst pair, so that in one which crosses the network NVLink's pairs get the
/// network's few. `starts`: each domain's first rank, ascending from 0. Source: NCCL 2.28.9, graph/paths.cc,
/// ncclTopoComputeP2pChannels, which takes the minimum over all peers.
[[nodiscard]] std::vector<std::uint32_t> domains_to_split(std::span<const std::uint32_t> starts,
                                                          std::uint32_t ranks,
                                                          std::span<const std::uint32_t> members);

/// A rank's groups in the order in which it begins them: by wave, then channel, then collectives by ascending
/// ids. `domains`: by rank; or nothing, and all messages go over kAll. All ranks have this order, and a group
/// waits for earlier ones alone; so of the groups that are not over, all ranks that have the first have begun
/// it, or can. Nothing waits for ever, even where a rank runs one group at a time.
[[nodiscard]] std::vector<PostedGroup> posted_groups(const program::RankProgram& program,
                                                     std::span<const std::uint32_t> domains);

}  // namespace refit::exec
