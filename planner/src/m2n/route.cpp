// SPDX-License-Identifier: Apache-2.0
#include "route.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace refit::m2n {
namespace {

constexpr std::uint32_t kMostLsaRanks = 64;
constexpr std::uint32_t kMostLsaSourceShards = 32;
constexpr std::uint32_t kMostLsaDestinationShards = 64;
/// Replicas injected side by side where the communicator is large.
constexpr std::uint32_t kMostInjectedReplicas = 4;

/// What a call comes down to before a path is chosen.
struct Setup {
    M2nSide source;
    M2nSide destination;
    std::uint64_t ranks;
    bool is_large;
    M2nBalance balance;
};

M2nBalance resolved_balance(const M2nSettings& settings, const Setup& setup) {
    auto balance = settings.balance;
    if (balance == M2nBalance::kAdaptive) {
        const bool is_node_aware = settings.path != M2nPath::kCombined || setup.is_large;
        balance = is_node_aware ? M2nBalance::kNodeAware : M2nBalance::kUniform;
    }
    const bool is_broadcast = setup.source.is_whole() && setup.destination.is_whole();
    return is_broadcast && !setup.is_large ? M2nBalance::kUniform : balance;
}

Setup setup_of(const M2nCall& call, const M2nSettings& settings) {
    Setup setup{
        normalised(call.source), normalised(call.destination), call.ranks(), false, M2nBalance::kUniform};
    setup.is_large = setup.ranks > settings.large_communicator;
    setup.balance = resolved_balance(settings, setup);
    return setup;
}

/// Source: NCCL M2N 0.2, reshard_user_window.cu; its other gates are versions of NCCL and of the driver.
bool takes_lsa_path(const Setup& setup, const M2nSettings& settings) {
    return settings.path == M2nPath::kLsa && setup.source.first_rank < setup.destination.first_rank &&
           setup.ranks <= kMostLsaRanks && setup.source.shards <= kMostLsaSourceShards &&
           setup.destination.shards <= kMostLsaDestinationShards;
}

Arrangement arranged(const Setup& setup,
                     Domains domains,
                     const std::optional<Stride>& stride = std::nullopt) {
    const auto sources = setup.source.replicas;
    if (setup.balance == M2nBalance::kUniform) {
        return {domains, stride, ReplicaMatch::uniform(sources, setup.destination.replicas)};
    }
    return {domains,
            stride,
            stride ? ReplicaMatch::strided(sources, setup.destination, domains, *stride)
                   : ReplicaMatch::by_domain(sources, setup.destination, domains)};
}

/// Domains of the destination that hold one replica; nothing where replicas do not fill domains evenly.
std::optional<std::uint32_t> domains_per_replica(const M2nSide& side, std::uint32_t domains) {
    if (!side.has_shards_inner && side.shards > 1 && side.replicas > 1) {
        return domains;
    }
    if (domains < side.replicas) {
        return 1;
    }
    return domains % side.replicas == 0 ? std::optional{domains / side.replicas} : std::nullopt;
}

/// How the split path would be laid out; nothing where M2N falls back to one communicator.
/// Source: NCCL M2N 0.2, reshard_split_comm.cu.
std::optional<Arrangement> split_arrangement(const Setup& setup, const M2nSettings& settings) {
    const auto& side = setup.destination;
    const auto domains = (side.ranks() - 1) / settings.domain_size + 1;
    const auto per_replica = domains_per_replica(side, domains);
    if (!per_replica) {
        return std::nullopt;
    }
    auto injected = std::min(setup.source.replicas, side.replicas);
    if (settings.single_injection.value_or(setup.is_large)) {
        injected = *per_replica > 1 ? 1 : std::min(injected, kMostInjectedReplicas);
    }
    std::optional<Stride> stride;
    if (std::uint64_t{injected} * *per_replica < domains) {
        stride = Stride{injected * *per_replica, *per_replica};
    }
    auto arrangement = arranged(setup, {settings.domain_size, side.first_rank.index()}, stride);
    return has_hop_off_rail(setup.source, side, arrangement) ? std::nullopt
                                                             : std::optional{std::move(arrangement)};
}

}  // namespace

Route route_of(const M2nCall& call, const M2nSettings& settings) {
    const auto setup = setup_of(call, settings);
    const auto route = [&](M2nPath path, Arrangement arrangement) {
        return Route{path, setup.balance, setup.source, setup.destination, std::move(arrangement)};
    };
    if (takes_lsa_path(setup, settings)) {
        // One domain holds all ranks, so that node-aware leaves every source replica but the first idle.
        return route(M2nPath::kLsa, arranged(setup, {static_cast<std::uint32_t>(setup.ranks), 0}));
    }
    if (settings.path != M2nPath::kCombined && setup.balance == M2nBalance::kNodeAware) {
        if (auto arrangement = split_arrangement(setup, settings)) {
            return route(M2nPath::kSplit, std::move(*arrangement));
        }
    }
    return route(M2nPath::kCombined, arranged(setup, {settings.domain_size, 0}));
}

}  // namespace refit::m2n
