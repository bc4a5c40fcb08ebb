// SPDX-License-Identifier: Apache-2.0
#include "replicas.hpp"

#include <utility>

namespace refit::m2n {
namespace {

/// Domain of each replica of shard 0, counted from that of the first.
std::vector<std::uint32_t> domain_offsets(const M2nSide& destination, Domains domains) {
    const auto first = domains.of(destination.rank_of(0, 0));
    std::vector<std::uint32_t> offsets;
    offsets.reserve(destination.replicas);
    for (std::uint32_t replica = 0; replica < destination.replicas; ++replica) {
        offsets.push_back(domains.of(destination.rank_of(0, replica)) - first);
    }
    return offsets;
}

}  // namespace

ReplicaMatch::ReplicaMatch(std::uint32_t sources, std::vector<std::uint32_t> source_of)
    : targets_(sources), sources_{std::move(source_of)} {
    for (std::uint32_t replica = 0; replica < sources_.size(); ++replica) {
        auto& range = targets_[sources_[replica]];
        range = {range.size() == 0 ? replica : range.begin, replica + 1};
    }
}

ReplicaMatch ReplicaMatch::uniform(std::uint32_t sources, std::uint32_t destinations) {
    std::vector<std::uint32_t> source_of(destinations);
    for (std::uint32_t replica = 0; replica < destinations; ++replica) {
        source_of[replica] = sources > destinations ? even_part(sources, destinations, replica).begin
                                                    : even_part_of(destinations, sources, replica);
    }
    return {sources, std::move(source_of)};
}

ReplicaMatch ReplicaMatch::by_domain(std::uint32_t sources, const M2nSide& destination, Domains domains) {
    auto source_of = domain_offsets(destination, domains);
    // Domains between the first and the last count even where shard 0 has no replica in them.
    const auto spanned = source_of.back() + 1;
    if (sources < spanned) {
        for (auto& offset : source_of) {
            offset = even_part_of(spanned, sources, offset);
        }
    }
    return {sources, std::move(source_of)};
}

ReplicaMatch ReplicaMatch::strided(std::uint32_t sources,
                                   const M2nSide& destination,
                                   Domains domains,
                                   Stride stride) {
    const auto offsets = domain_offsets(destination, domains);
    const auto injected = stride.domains / stride.domains_per_replica;
    auto source_of = offsets;
    for (auto& offset : source_of) {
        offset = offset / stride.domains_per_replica % injected;
    }
    ReplicaMatch match{sources, std::move(source_of)};
    match.targets_.assign(sources, {});
    for (std::uint32_t replica = destination.replicas; replica-- > 0;) {
        const auto source = offsets[replica] / stride.domains_per_replica;
        if (offsets[replica] % stride.domains_per_replica == 0 && source < injected) {
            match.targets_[source] = {replica, destination.replicas};
        }
    }
    return match;
}

}  // namespace refit::m2n
