// SPDX-License-Identifier: Apache-2.0
#include "refit/hop_role.hpp"

#include <algorithm>

namespace refit {
namespace {

/// The ranks of the shard that has the first element of the box.
std::vector<std::uint32_t> ranks_with(const Distribution& distribution, const Box& box, std::uint32_t first_rank) {
    const auto has_corner = [&](const Box& held) {
        for (std::size_t axis = 0; axis < box.axes().size(); ++axis) {
            const auto corner = box.axes()[axis].begin;
            if (corner < held.axes()[axis].begin || corner >= held.axes()[axis].end) {
                return false;
            }
        }
        return true;
    };
    std::vector<std::uint32_t> ranks;
    for (const auto& shard : distribution.shards()) {
        if (std::ranges::any_of(shard.boxes, has_corner)) {
            for (const auto member : shard.members) {
                ranks.push_back(first_rank + member);
            }
        }
    }
    return ranks;
}

bool contains(const std::vector<std::uint32_t>& ranks, std::uint32_t rank) { return std::ranges::binary_search(ranks, rank); }

}  // namespace

std::string_view describe(HopRole role) noexcept {
    switch (role) {
        case HopRole::kChosenHolder:
            return "one of several holders, the one with least to send";
        case HopRole::kRelay:
            return "passes on to another domain, where the holders' NICs are full";
        case HopRole::kFanOut:
            return "passes on to a neighbour, so that it enters the domain once";
        case HopRole::kLentExit:
            return "hands to a neighbour that lends its NIC on the way out";
        case HopRole::kLentEntry:
            return "enters by a neighbour that lends its NIC";
        case HopRole::kOnlyHolder:
            break;
    }
    return "the only holder";
}

MessageEnds message_ends(const RelayTable& relays, const Workload& workload, std::uint32_t train_gpus) {
    MessageEnds ends;
    for (const auto& message : relays.messages) {
        const auto& part = relays.parts[message.first_part];
        const auto& entry = workload.classes()[part.parameter];
        const auto& slice = entry.slices[part.slice];
        ends.holders.push_back(ranks_with(entry.source, part.box, slice.train_stage * workload.trainers_per_stage()));
        ends.receivers.push_back(ranks_with(entry.destinations[slice.generate_stage], part.box, train_gpus));
    }
    return ends;
}

HopRole role_of(const RelayTable& relays, std::size_t hop, const MessageEnds& ends, const Cluster& cluster) {
    const auto message = relays.message[hop];
    const auto from = relays.source[hop];
    const auto to = relays.destination[hop];
    const bool is_network = cluster.domain_of(RankId{from}) != cluster.domain_of(RankId{to});
    if (!contains(ends.receivers[message], to)) {
        return is_network ? HopRole::kLentEntry : HopRole::kLentExit;
    }
    if (contains(ends.holders[message], from)) {
        return ends.holders[message].size() == 1 ? HopRole::kOnlyHolder : HopRole::kChosenHolder;
    }
    // A neighbour that only lends its NIC stands for the holder that handed it the message.
    const bool has_lent = !contains(ends.receivers[message], from);
    if (is_network && has_lent) {
        return HopRole::kLentExit;
    }
    return is_network ? HopRole::kRelay : has_lent ? HopRole::kLentEntry : HopRole::kFanOut;
}

}  // namespace refit
