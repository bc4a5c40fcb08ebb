// SPDX-License-Identifier: Apache-2.0
#include "refit/vllm.hpp"

#include <algorithm>
#include <utility>

#include "cuts.hpp"
#include "refit/vocabulary.hpp"

namespace refit::vllm {
namespace {

/// Boxes of tensor-parallel rank `coordinate`; `first` is the axis of the tensor's own dim 0.
std::vector<Box> boxes_of(const ParameterClass& parameter,
                          const Box& whole,
                          std::size_t first,
                          std::uint32_t tp,
                          std::uint32_t coordinate) {
    switch (parameter.sharding) {
        case Sharding::kVocabulary:
            return vocabulary_part(parameter, whole, first, kGeneratorVocabularyMultiple, {tp, coordinate});
        case Sharding::kQuery:
        case Sharding::kKey:
        case Sharding::kValue:
            return {whole.with(first, equal_part(parameter.shape[0], tp, coordinate))};
        default:
            return linear_part(parameter, whole, first, {tp, coordinate});
    }
}

/// Parts into which tp cuts the tensor: all of tp, or the KV heads where there are fewer.
std::uint32_t ways_of(const ParameterClass& parameter, std::uint32_t tp) {
    switch (parameter.sharding) {
        case Sharding::kReplicated:
            return 1;
        case Sharding::kKey:
        case Sharding::kValue:
            return static_cast<std::uint32_t>(std::min<std::uint64_t>(tp, parameter.heads.key_value));
        default:
            return tp;
    }
}

/// Calls `visit(rank, tensor-parallel coordinate)` for the ranks of `stage` in every engine, in ascending
/// order.
template <class Visit>
void for_each_rank(const GenerateLayout& layout, std::uint32_t stage, Visit&& visit) {
    for (std::uint32_t dp = 0; dp < layout.dp; ++dp) {
        for (std::uint32_t tp = 0; tp < layout.tp; ++tp) {
            visit((dp * layout.pp + stage) * layout.tp + tp, tp);
        }
    }
}

void drop_empty(std::vector<Shard>& shards) {
    std::erase_if(shards, [](const Shard& shard) { return shard.boxes.empty(); });
}

Distribution cut_by_tp(const ParameterClass& parameter, const GenerateLayout& layout, std::uint32_t stage) {
    const auto shape = logical_shape(parameter);
    const auto whole = Box::whole(shape);
    const auto ways = ways_of(parameter, layout.tp);
    std::vector<Shard> shards;
    for (std::uint32_t part = 0; part < ways; ++part) {
        shards.push_back({boxes_of(parameter, whole, parameter.is_expert() ? 1 : 0, ways, part), {}});
    }
    for_each_rank(layout, stage, [&](std::uint32_t rank, std::uint32_t tp) {
        shards[tp / (layout.tp / ways)].members.push_back(rank);
    });
    drop_empty(shards);
    return {shape, std::move(shards)};
}

/// The experts of expert rank `ep`, as intervals. Linear: the first `experts % ep` ranks hold one more.
std::vector<Interval> experts_of(const ParameterClass& parameter,
                                 const GenerateLayout& layout,
                                 std::uint64_t ep) {
    if (layout.expert_placement == ExpertPlacement::kRoundRobin) {
        std::vector<Interval> turns;
        for (auto expert = ep; expert < parameter.experts; expert += layout.ep) {
            turns.push_back({expert, expert + 1});
        }
        return turns;
    }
    const std::uint64_t base = parameter.experts / layout.ep;
    const std::uint64_t extra = parameter.experts % layout.ep;
    const auto begin = ep * base + std::min(ep, extra);
    return {{begin, begin + base + (ep < extra ? 1 : 0)}};
}

Distribution whole_experts(const ParameterClass& parameter,
                           const GenerateLayout& layout,
                           std::uint32_t stage) {
    const auto shape = logical_shape(parameter);
    const auto whole = Box::whole(shape);
    std::vector<Shard> shards;
    for (std::uint64_t ep = 0; ep < layout.ep; ++ep) {
        Shard shard;
        for (const auto& experts : experts_of(parameter, layout, ep)) {
            shard.boxes.push_back(whole.with(0, experts));
        }
        shards.push_back(std::move(shard));
    }
    for_each_rank(layout, stage, [&](std::uint32_t rank, std::uint32_t tp) {
        shards[layout.pp == 1 ? rank % layout.ep : tp].members.push_back(rank);
    });
    return {shape, std::move(shards)};
}

}  // namespace

std::uint32_t stage_of_layer(std::uint32_t layer, std::uint32_t layers, const GenerateLayout& layout) {
    const auto base = layers / layout.pp;
    const auto remainder = layers % layout.pp;
    std::uint32_t end = 0;
    for (std::uint32_t stage = 0; stage < layout.pp; ++stage) {
        const bool has_more = remainder > 0 && stage + 1 < layout.pp && stage + 1 + remainder >= layout.pp;
        end += base + (has_more ? 1 : 0);
        if (layer < end) {
            return stage;
        }
    }
    return layout.pp - 1;
}

Distribution distribution(const ParameterClass& parameter,
                          const GenerateLayout& layout,
                          std::uint32_t stage) {
    const bool has_whole_experts = parameter.is_expert() && layout.ep > 1;
    return has_whole_experts ? whole_experts(parameter, layout, stage) : cut_by_tp(parameter, layout, stage);
}

std::uint64_t most_stored_elements(const ParameterClass& parameter, const GenerateLayout& layout) {
    if (parameter.sharding == Sharding::kVocabulary) {
        return padded_rows(parameter.shape[0], kGeneratorVocabularyMultiple) / layout.tp *
               (parameter.elements() / parameter.shape[0]);
    }
    if (parameter.is_expert() && layout.ep > 1) {
        return (parameter.experts + layout.ep - 1) / layout.ep * parameter.elements();
    }
    return parameter.tensors_per_layer() * parameter.elements() / ways_of(parameter, layout.tp);
}

}  // namespace refit::vllm
