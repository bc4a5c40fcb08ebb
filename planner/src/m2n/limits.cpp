// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "refit/m2n_limits.hpp"
#include "refit/quantity.hpp"
#include "route.hpp"

namespace refit {
namespace m2n {
namespace {

constexpr std::uint64_t kMostMeshAxes = 2;
constexpr std::uint64_t kMostTensorAxes = 3;
constexpr std::uint64_t kMostTargets = 64;
constexpr std::uint64_t kMostSources = 16;
/// A leader and those to whom it stores.
constexpr std::uint32_t kMostDomainReplicas = 1 + 128;
/// A call that stages 2^32 bytes and more on a rank hangs. Source: github.com/NVIDIA/nccl-extensions,
/// issue 15.
constexpr std::uint64_t kMostStaging = 0xFFFF'FFFF;

void add_description_refusals(std::vector<M2nRefusal>& refusals, const M2nTensor& tensor, M2nEnd end) {
    using Kind = DtensorPlacement::Kind;
    const auto cuts =
        tensor.placements.size() - static_cast<std::size_t>(std::ranges::count(
                                       tensor.placements, Kind::kReplicate, &DtensorPlacement::kind));
    const auto refuse_above = [&](M2nLimit limit, std::uint64_t found, std::uint64_t allowed) {
        if (found > allowed) {
            refusals.push_back({limit, end, std::nullopt, std::nullopt, found, allowed});
        }
    };
    refuse_above(M2nLimit::kMeshAxes, tensor.mesh.axes.size(), kMostMeshAxes);
    refuse_above(M2nLimit::kShardAxes, cuts, 1);
    for (const auto& placement : tensor.placements) {
        refuse_above(
            M2nLimit::kStridedShards, placement.kind == Kind::kStridedShard ? placement.split_factor : 1, 1);
    }
    for (std::size_t i = 0; i < tensor.placements.size(); ++i) {
        const auto& placement = tensor.placements[i];
        if (placement.kind != Kind::kReplicate && cuts == 1) {
            refuse_above(M2nLimit::kUnequalShards, tensor.shape[placement.dim] % tensor.mesh.axes[i], 0);
        }
    }
}

/// The first domain where too many replicas of a shard would share what they received.
std::optional<M2nRefusal> crowded_domain(const Route& route, const Arrangement& arrangement) {
    for (std::uint32_t source = 0; source < route.source.replicas; ++source) {
        const auto targets = arrangement.match.targets_of(source);
        for (std::uint32_t shard = 0;
             targets.size() > kMostDomainReplicas && shard < route.destination.shards;
             ++shard) {
            for (const auto& group : domain_groups(route.destination, shard, targets, arrangement)) {
                if (group.replicas.size() > kMostDomainReplicas) {
                    return M2nRefusal{M2nLimit::kLocalFollowers,
                                      M2nEnd::kDestination,
                                      shard,
                                      group.domain,
                                      group.replicas.size(),
                                      kMostDomainReplicas};
                }
            }
        }
    }
    return std::nullopt;
}

/// M2N counts replicas by the domains of the whole communicator, and again as it lays them out.
std::optional<M2nRefusal> crowded_domain(const Route& route) {
    const Domains absolute{route.arrangement.domains.size, 0};
    const auto sources = route.source.replicas;
    const Arrangement counted{absolute,
                              std::nullopt,
                              route.balance == M2nBalance::kUniform
                                  ? ReplicaMatch::uniform(sources, route.destination.replicas)
                                  : ReplicaMatch::by_domain(sources, route.destination, absolute)};
    const auto refusal = crowded_domain(route, counted);
    return refusal ? refusal : crowded_domain(route, route.arrangement);
}

/// The first of `shards` that meets more than `allowed` of the other side.
template <class Meeting>
void refuse_meeting(std::vector<M2nRefusal>& refusals,
                    M2nLimit limit,
                    M2nEnd end,
                    std::uint32_t shards,
                    std::uint64_t allowed,
                    const Meeting& meeting) {
    for (std::uint32_t shard = 0; shard < shards; ++shard) {
        if (const M2nRange met = meeting(shard); met.size() > allowed) {
            refusals.push_back({limit, end, shard, std::nullopt, met.size(), allowed});
            return;
        }
    }
}

}  // namespace

std::vector<M2nRefusal> description_refusals(const M2nCall& call) {
    std::vector<M2nRefusal> refusals;
    if (const auto axes = call.source.shape.size(); axes > kMostTensorAxes) {
        refusals.push_back(
            {M2nLimit::kTensorAxes, std::nullopt, std::nullopt, std::nullopt, axes, kMostTensorAxes});
    }
    if (const auto size = call.source.element_bytes; size > 8 || (size & (size - 1)) != 0) {
        refusals.push_back({M2nLimit::kElementBytes, std::nullopt, std::nullopt, std::nullopt, size, 8});
    }
    add_description_refusals(refusals, call.source, M2nEnd::kSource);
    add_description_refusals(refusals, call.destination, M2nEnd::kDestination);
    std::ranges::stable_sort(refusals, {}, &M2nRefusal::limit);
    return refusals;
}

std::vector<M2nRefusal> plan_refusals(const Route& route,
                                      const ShardOverlap& overlap,
                                      const M2nSettings& settings) {
    std::vector<M2nRefusal> refusals;
    if (route.path != M2nPath::kLsa) {
        refuse_meeting(refusals,
                       M2nLimit::kTargets,
                       M2nEnd::kSource,
                       route.source.shards,
                       kMostTargets,
                       [&](auto shard) { return overlap.destinations_of(shard); });
        refuse_meeting(refusals,
                       M2nLimit::kSources,
                       M2nEnd::kDestination,
                       route.destination.shards,
                       kMostSources,
                       [&](auto shard) { return overlap.sources_of(shard); });
        if (const auto refusal = crowded_domain(route)) {
            refusals.push_back(*refusal);
        }
    }
    const auto staging = std::min(settings.staging.count(), kMostStaging);
    if (overlap.local_bytes() > staging) {
        refusals.push_back(
            {M2nLimit::kStaging, std::nullopt, std::nullopt, std::nullopt, overlap.local_bytes(), staging});
    }
    return refusals;
}

}  // namespace m2n

namespace {

/// What would hold a call that stages too much: a larger bucket, as long as M2N can count it, else several
/// calls.
std::string staging_cure(const M2nRefusal& refusal) {
    if (refusal.found <= m2n::kMostStaging) {
        return "; NCCL_RESHARD_PACK_BUFFSIZES=" + std::to_string(refusal.found) + ":4 would hold it";
    }
    return "; cut it into " +
           std::to_string((refusal.found - 1) / std::max<std::uint64_t>(refusal.allowed, 1) + 1) + " calls";
}

std::string message_of(const M2nRefusal& refusal) {
    const auto found = std::to_string(refusal.found);
    const auto allowed = std::to_string(refusal.allowed);
    const auto shard = refusal.shard ? " shard " + std::to_string(*refusal.shard) : std::string{};
    const auto end = refusal.end ? std::string{name_of(*refusal.end)} : std::string{};
    switch (refusal.limit) {
        case M2nLimit::kMeshAxes:
            return "the " + end + " mesh has " + found + " axes; M2N takes at most " + allowed;
        case M2nLimit::kTensorAxes:
            return "the tensor has " + found + " axes; M2N takes at most " + allowed;
        case M2nLimit::kElementBytes:
            return "an element has " + found + " bytes; M2N takes 1, 2, 4 or 8";
        case M2nLimit::kShardAxes:
            return found + " axes of the " + end + " mesh cut the tensor; M2N takes " + allowed;
        case M2nLimit::kStridedShards:
            return "a part of the " + end + " tensor consists of " + found + " blocks; M2N takes one";
        case M2nLimit::kUnequalShards:
            return "the parts of the " + end + " tensor are not equal: " + found +
                   " of its cut axis are over; M2N takes equal parts only";
        case M2nLimit::kTargets:
            return end + shard + " overlaps " + found + " destination shards; M2N takes at most " + allowed;
        case M2nLimit::kSources:
            return end + shard + " overlaps " + found + " source shards; M2N takes at most " + allowed;
        case M2nLimit::kLocalFollowers:
            return end + shard + " has " + found + " replicas in NVLink domain " +
                   std::to_string(*refusal.domain) + "; M2N takes at most " + allowed;
        case M2nLimit::kStaging:
            break;
    }
    return "a rank stages " + format_bytes(Bytes{refusal.found}) + " (" + found +
           " B) in one call; M2N takes at most " + allowed + " B" + staging_cure(refusal);
}

}  // namespace

std::string_view name_of(M2nLimit limit) noexcept {
    switch (limit) {
        case M2nLimit::kMeshAxes:
            return "MESH_AXES";
        case M2nLimit::kTensorAxes:
            return "TENSOR_AXES";
        case M2nLimit::kElementBytes:
            return "ELEMENT_BYTES";
        case M2nLimit::kShardAxes:
            return "SHARD_AXES";
        case M2nLimit::kStridedShards:
            return "STRIDED_SHARDS";
        case M2nLimit::kUnequalShards:
            return "UNEQUAL_SHARDS";
        case M2nLimit::kTargets:
            return "MAX_TARGETS";
        case M2nLimit::kSources:
            return "MAX_SOURCES";
        case M2nLimit::kLocalFollowers:
            return "MAX_LOCAL_FOLLOWERS";
        case M2nLimit::kStaging:
            break;
    }
    return "PACK_BUFFSIZES";
}

std::string_view name_of(M2nEnd end) noexcept {
    return end == M2nEnd::kSource ? "source" : "destination";
}

Fault to_fault(const M2nRefusal& refusal) {
    return {ErrorCode::kInfeasible,
            std::string{name_of(refusal.limit)},
            message_of(refusal) + " [" + std::string{kM2nRules} + "]",
            refusal.end ? "/" + std::string{name_of(*refusal.end)} : std::string{}};
}

std::vector<M2nRefusal> m2n_refusals(const M2nCall& call, const M2nSettings& settings) {
    auto refusals = m2n::description_refusals(call);
    if (!refusals.empty()) {
        return refusals;
    }
    const auto route = m2n::route_of(call, settings);
    return m2n::plan_refusals(route, {call.source, route.source, route.destination}, settings);
}

}  // namespace refit
