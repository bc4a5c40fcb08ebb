// SPDX-License-Identifier: Apache-2.0
#include "refit/fsdp.hpp"

#include <utility>

#include "cuts.hpp"

namespace refit::fsdp {
namespace {

/// The ranks with one place in every replica.
std::vector<std::uint32_t> members(const TrainLayout& layout, std::uint32_t place) {
    std::vector<std::uint32_t> ranks;
    for (auto rank = place; rank < layout.gpus; rank += layout.ranks_per_replica()) {
        ranks.push_back(rank);
    }
    return ranks;
}

/// Ranks between which one tensor is cut.
std::uint32_t ways_of(const ParameterClass& parameter, const TrainLayout& layout) {
    return parameter.is_expert() ? layout.fsdp : layout.ranks_per_replica();
}

}  // namespace

Distribution distribution(const ParameterClass& parameter, const TrainLayout& layout) {
    auto shape = logical_shape(parameter);
    const auto whole = Box::whole(shape);
    const std::size_t rows_axis = parameter.is_expert() ? 1 : 0;
    const auto ways = ways_of(parameter, layout);
    std::vector<Shard> shards;
    for (std::uint32_t chunk = 0; chunk < ways; ++chunk) {
        const auto rows = chunk_part(parameter.shape[0], ways, chunk);
        if (rows.length() == 0) {
            break;
        }
        const auto box = whole.with(rows_axis, rows);
        if (!parameter.is_expert()) {
            shards.push_back({{box}, members(layout, chunk)});
            continue;
        }
        for (std::uint32_t ep = 0; ep < layout.ep; ++ep) {
            shards.push_back({{box.with(0, equal_part(parameter.experts, layout.ep, ep))},
                              members(layout, chunk * layout.ep + ep)});
        }
    }
    return {std::move(shape), std::move(shards)};
}

std::uint64_t gathered_elements(const ParameterClass& parameter, const TrainLayout& layout) {
    return chunk_part(parameter.shape[0], ways_of(parameter, layout), 0).length() *
           (parameter.elements() / parameter.shape[0]);
}

}  // namespace refit::fsdp
