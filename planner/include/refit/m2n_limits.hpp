// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "refit/m2n_settings.hpp"
#include "refit/m2n_tensor.hpp"
#include "refit/result.hpp"

namespace refit {

/// The rule set that refusals of M2N name.
inline constexpr std::string_view kM2nRules = "nccl-m2n@0.2";

/// What a call cannot exceed. Source: NCCL M2N 0.2, reshard_limits.h; the names below are M2N's own where it
/// has one.
enum class M2nLimit : std::uint8_t {
    kMeshAxes,        ///< MESH_AXES: 1 or 2 axes a mesh.
    kTensorAxes,      ///< TENSOR_AXES: 1 to 3 axes a tensor.
    kElementBytes,    ///< ELEMENT_BYTES: 1, 2, 4 or 8.
    kShardAxes,       ///< SHARD_AXES: one mesh axis cuts, of a mesh that does not replicate throughout.
    kStridedShards,   ///< STRIDED_SHARDS: blocks of a part, 1.
    kUnequalShards,   ///< UNEQUAL_SHARDS: indices left over, 0.
    kTargets,         ///< MAX_TARGETS: destination shards that one source shard overlaps.
    kSources,         ///< MAX_SOURCES: source shards that one destination shard overlaps.
    kLocalFollowers,  ///< MAX_LOCAL_FOLLOWERS: replicas of a destination shard in one domain, its leader
                      ///< among them.
    kStaging,         ///< PACK_BUFFSIZES: bytes that a rank stages in one call.
};

/// "MAX_SOURCES" ...
[[nodiscard]] std::string_view name_of(M2nLimit limit) noexcept;

enum class M2nEnd : std::uint8_t { kSource, kDestination };
[[nodiscard]] std::string_view name_of(M2nEnd end) noexcept;

/// Why M2N does not take a call, in numbers.
struct M2nRefusal {
    M2nLimit limit;
    std::optional<M2nEnd> end = std::nullopt;            ///< Whose tensor or shard this is.
    std::optional<std::uint32_t> shard = std::nullopt;   ///< The first one that exceeds the limit.
    std::optional<std::uint64_t> domain = std::nullopt;  ///< For kLocalFollowers.
    std::uint64_t found = 0;
    std::uint64_t allowed = 0;
    bool operator==(const M2nRefusal&) const = default;
};

/// The refusal as a fault: code kInfeasible, rule the limit's name, message with both numbers and the rule
/// set.
[[nodiscard]] Fault to_fault(const M2nRefusal& refusal);

/// What is wrong with a call in itself, whatever M2N can do: shapes or dtypes that differ, empty or endless
/// tensors and meshes, placements that do not fit, rank sets that overlap or leave the communicator. M2N
/// itself accepts some of it and hangs. Each fault is a kInvalidInput whose place is a JSON pointer within
/// the call: "/source/mesh/0".
[[nodiscard]] Faults m2n_faults(const M2nCall& call, const M2nSettings& settings);

/// Every limit that the call exceeds, each once a side, in the order of M2nLimit. Pre: no faults.
/// Cost: in destination ranks, not in pairs of shards.
[[nodiscard]] std::vector<M2nRefusal> m2n_refusals(const M2nCall& call, const M2nSettings& settings);

}  // namespace refit
