// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace refit {

/// What slows the end of a refit on the receivers: the published times cannot tell these apart
/// (docs/cost_model.md).
enum class FinalizeReading : std::uint8_t {
    kPerExpert,      ///< A cost per local expert, on Blackwell.
    kSlowAllGather,  ///< Replicas in one NVLink domain gather at a fraction of its rate.
    kPerLocalByte,   ///< A cost per byte of the local shard, everywhere.
};

/// What grouped expert parameters cost on their way through a trainer stage.
enum class BulkCostReading : std::uint8_t {
    kPerParameter,  ///< One cost each, however many experts.
    kFloor,         ///< What reading the code suggests, a fifth of it.
    kPerExpert,     ///< A cost for each expert of it that a trainer holds.
};

/// Over how many NICs of a domain the ring of replicas runs.
enum class ReplicaRingReading : std::uint8_t {
    kOneNic,    ///< One, whatever the members.
    kEveryNic,  ///< As many as the smallest part of the ring in a domain has, like other rings.
};

/// One reading of what the published times leave open.
struct Reading {
    FinalizeReading finalize = FinalizeReading::kPerExpert;
    BulkCostReading bulk_cost = BulkCostReading::kPerParameter;
    ReplicaRingReading replica_ring = ReplicaRingReading::kOneNic;
    bool operator==(const Reading&) const = default;
};

/// What a user has chosen of them; what is left open counts as the usual, and spans a prediction's range.
struct ReadingChoice {
    std::optional<FinalizeReading> finalize;
    std::optional<BulkCostReading> bulk_cost;
    std::optional<ReplicaRingReading> replica_ring;
    /// Whether the floor is among what is left open. It reads the rows that the cost per parameter was fitted to as old
    /// software, so it says nothing of a refit by software no newer than theirs.
    bool is_floor_open = true;
    bool operator==(const ReadingChoice&) const = default;

    /// The chosen, and the usual where nothing is.
    [[nodiscard]] Reading usual() const noexcept;
    /// Every reading that the choice leaves open, the usual one first. Rings on every NIC go with a cost per
    /// parameter alone, unless they are chosen: the two were fitted together.
    [[nodiscard]] std::vector<Reading> all() const;
};

/// "per-expert", "slow-all-gather", "per-local-byte".
[[nodiscard]] std::string_view name_of(FinalizeReading reading) noexcept;
/// "per-parameter", "floor", "per-expert".
[[nodiscard]] std::string_view name_of(BulkCostReading reading) noexcept;
/// "one-nic", "every-nic".
[[nodiscard]] std::string_view name_of(ReplicaRingReading reading) noexcept;

}  // namespace refit
