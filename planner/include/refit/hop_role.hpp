// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "refit/cluster.hpp"
#include "refit/plan.hpp"
#include "refit/workload.hpp"

namespace refit {

/// Why a hop of a relay table is there, and why its sender sends.
enum class HopRole : std::uint8_t {
    kOnlyHolder,    ///< No other rank has the message.
    kChosenHolder,  ///< One of several holders: the one with least to send.
    kRelay,         ///< Passes on to another domain what it received, since the holders' NICs have enough to do.
    kFanOut,        ///< Passes on to a neighbour that wants it, so that it enters the domain once.
    kLentExit,      ///< To a neighbour that does not want it but sends it on by its own NIC.
    kLentEntry,     ///< By a neighbour's NIC into a domain whose receivers' NICs have enough to do.
};

/// "the only holder", "one of several holders, the one with least to send" …
[[nodiscard]] std::string_view describe(HopRole role) noexcept;

/// Ranks that hold the first part of each message before the refit, and those that want it. By message.
struct MessageEnds {
    std::vector<std::vector<std::uint32_t>> holders;    ///< Ascending ranks.
    std::vector<std::vector<std::uint32_t>> receivers;
};
[[nodiscard]] MessageEnds message_ends(const RelayTable& relays, const Workload& workload, std::uint32_t train_gpus);

/// Pre: `hop` exists; `ends` are those of the table.
[[nodiscard]] HopRole role_of(const RelayTable& relays, std::size_t hop, const MessageEnds& ends, const Cluster& cluster);

}  // namespace refit
