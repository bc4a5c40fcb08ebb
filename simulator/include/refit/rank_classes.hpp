// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "refit/cluster.hpp"
#include "refit/fabric.hpp"
#include "refit/plan.hpp"

namespace refit {

/// The ports of a rank, its copy engine and its host thread, as links of a simulation; and the uplinks of a pod.
enum class Port : std::uint8_t { kNicOut, kNicIn, kNvlinkOut, kNvlinkIn, kCopy, kHost, kUplink, kDownlink };
inline constexpr std::size_t kPorts = 6;  ///< Of a rank.

/// How much of each port a rank takes, for each byte that its group's ring carries. By Port; 0 beyond the
/// four ports.
using PortShares = std::array<double, kPorts>;

/// What one group's ring takes beside its own ranks' ports, where NICs are down, keep to rails, or lie under a spine.
struct RingDetours {
    std::vector<std::pair<RankId, PortShares>> helpers;  ///< Ranks outside the group whose NICs it goes by.
    std::vector<double> up;                              ///< By pod: share of its uplinks; empty without a spine.
    std::vector<double> down;
};

/// A collective's rings: what each rank puts on its ports, and what the rings have in common.
struct RingShares {
    std::vector<PortShares> of_rank;    ///< By rank; all 0 outside the groups.
    std::vector<double> wire_bytes;     ///< By group: what each hop carries over all calls. Unit: byte.
    std::vector<bool> crosses_domains;  ///< By group.
    std::vector<RingDetours> detours;   ///< By group; empty on a plain fabric.
};
[[nodiscard]] RingShares ring_shares(const Plan& plan,
                                     const Collective& collective,
                                     const Cluster& cluster,
                                     ReplicaRingReading replica_ring = ReplicaRingReading::kOneNic);

/// Ranks that some stages of a plan treat alike: each has the same ports, sends and receives the same bytes
/// to and from the same classes in every transfer, and sits in rings of the same make. What holds for one of
/// a class holds for all, so a simulation runs one. Found by refining until each class agrees (colour
/// refinement, the coarsest equitable partition). Where a plan relays messages, or messages go by other ranks'
/// NICs or under a spine, each rank is a class of its own.
class RankClasses {
public:
    /// `stages`: those of the plan to look at. Where several roots broadcast, trainers of unlike stages are
    /// told apart: `trainers_per_stage` of them each.
    [[nodiscard]] static RankClasses make(const Plan& plan,
                                          std::span<const std::uint32_t> stages,
                                          const Cluster& cluster,
                                          const Fabric& fabric,
                                          std::uint32_t trainers_per_stage,
                                          ReplicaRingReading replica_ring = ReplicaRingReading::kOneNic);

    [[nodiscard]] std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(members_.size()); }
    [[nodiscard]] std::uint32_t class_of(RankId rank) const noexcept { return class_of_[rank.index()]; }
    /// Ranks of a class, ascending. Classes are numbered by their first rank.
    [[nodiscard]] const std::vector<RankId>& members(std::uint32_t index) const noexcept {
        return members_[index];
    }

private:
    explicit RankClasses(std::vector<std::uint32_t> class_of);

    std::vector<std::uint32_t> class_of_;
    std::vector<std::vector<RankId>> members_;
};

}  // namespace refit
