// SPDX-License-Identifier: Apache-2.0
#include "refit/megatron.hpp"

#include <algorithm>
#include <utility>

#include "cuts.hpp"
#include "refit/vocabulary.hpp"

namespace refit::megatron {
namespace {

/// Rows of a projection that stand together in the fused weight of its KV group.
struct Band {
    std::uint64_t fused;   ///< First row, counted within the group.
    std::uint64_t stored;  ///< First row in the projection itself.
    std::uint64_t rows;
};

/// The bands of a projection in one KV group, which is stored as [queries of all heads, their output gates, k, v]; a head
/// of q_proj holds its queries and then its gate.
/// Source: Megatron-Bridge conversion/param_mapping.py, merge_qkv_weights.
std::vector<Band> bands_of_group(const ParameterClass& parameter, std::uint64_t group) {
    const auto& heads = parameter.heads;
    const auto per_group = heads.query / heads.key_value;
    const auto query_rows = per_group * heads.rows_per_query_head;
    const auto key_rows = heads.rows_per_key_value_head;
    if (parameter.sharding != Sharding::kQuery) {
        return {{query_rows + (parameter.sharding == Sharding::kValue ? key_rows : 0), group * key_rows, key_rows}};
    }
    if (!heads.has_output_gate()) {
        return {{0, group * query_rows, query_rows}};
    }
    std::vector<Band> bands;
    for (std::uint64_t head = 0; head < per_group; ++head) {
        const auto stored = group * query_rows + head * heads.rows_per_query_head;
        bands.push_back({head * key_rows, stored, key_rows});
        bands.push_back({(per_group + head) * key_rows, stored + key_rows, key_rows});
    }
    return bands;
}

/// Rows of the q, k or v projection that lie in rows `cut` of the fused weight, neighbours in a group joined.
std::vector<Interval> rows_in_fused_cut(const ParameterClass& parameter, Interval cut) {
    const auto& heads = parameter.heads;
    const auto group_rows =
        heads.query / heads.key_value * heads.rows_per_query_head + 2 * heads.rows_per_key_value_head;
    std::vector<Interval> rows;
    for (std::uint64_t group = cut.begin / group_rows; group < heads.key_value && group * group_rows < cut.end; ++group) {
        const auto first_of_group = rows.size();
        for (const auto& band : bands_of_group(parameter, group)) {
            const auto fused = group * group_rows + band.fused;
            const auto begin = std::max(cut.begin, fused);
            const auto end = std::min(cut.end, fused + band.rows);
            if (begin >= end) {
                continue;
            }
            const Interval stored{band.stored + (begin - fused), band.stored + (end - fused)};
            if (rows.size() > first_of_group && rows.back().end == stored.begin) {
                rows.back().end = stored.end;
            } else {
                rows.push_back(stored);
            }
        }
    }
    return rows;
}

std::vector<Box> fused_attention_part(const ParameterClass& parameter, const Box& whole, std::uint32_t tp,
                                      std::uint32_t coordinate) {
    const auto& heads = parameter.heads;
    const auto fused = heads.query * heads.rows_per_query_head + 2 * heads.key_value * heads.rows_per_key_value_head;
    std::vector<Box> boxes;
    for (const auto& rows : rows_in_fused_cut(parameter, equal_part(fused, tp, coordinate))) {
        boxes.push_back(whole.with(0, rows));
    }
    return boxes;
}

/// Boxes of tensor-parallel rank `coordinate`; `first` is the axis of the tensor's own dim 0.
std::vector<Box> boxes_of(const ParameterClass& parameter, const Box& whole, std::size_t first, std::uint32_t tp,
                          std::uint32_t coordinate) {
    switch (parameter.sharding) {
        case Sharding::kVocabulary:
            return vocabulary_part(parameter, whole, first, trainer_vocabulary_multiple(parameter.shape[0], tp), {tp, coordinate});
        case Sharding::kQuery:
        case Sharding::kKey:
        case Sharding::kValue:
            return fused_attention_part(parameter, whole, tp, coordinate);
        default:
            return linear_part(parameter, whole, first, {tp, coordinate});
    }
}

Distribution dense(const ParameterClass& parameter, const TrainLayout& layout) {
    const auto whole = Box::whole(parameter.shape);
    const auto ways = parameter.sharding == Sharding::kReplicated ? 1 : layout.tp;
    std::vector<Shard> shards;
    for (std::uint32_t coordinate = 0; coordinate < ways; ++coordinate) {
        Shard shard{boxes_of(parameter, whole, 0, ways, coordinate), {}};
        for (auto rank = coordinate; rank < layout.ranks_per_stage() && !shard.boxes.empty(); rank += ways) {
            shard.members.push_back(rank);
        }
        if (!shard.boxes.empty()) {
            shards.push_back(std::move(shard));
        }
    }
    return {parameter.shape, std::move(shards)};
}

Distribution experts(const ParameterClass& parameter, const TrainLayout& layout) {
    const auto shape = logical_shape(parameter);
    const auto whole = Box::whole(shape);
    const auto block = layout.ep * layout.etp;
    std::vector<Shard> shards;
    for (std::uint32_t ep = 0; ep < layout.ep; ++ep) {
        const auto local = whole.with(0, equal_part(parameter.experts, layout.ep, ep));
        for (std::uint32_t etp = 0; etp < layout.etp; ++etp) {
            Shard shard{boxes_of(parameter, local, 1, layout.etp, etp), {}};
            for (auto rank = ep * layout.etp + etp; rank < layout.ranks_per_stage(); rank += block) {
                shard.members.push_back(rank);
            }
            shards.push_back(std::move(shard));
        }
    }
    return {shape, std::move(shards)};
}

}  // namespace

Distribution distribution(const ParameterClass& parameter, const TrainLayout& layout) {
    return parameter.is_expert() ? experts(parameter, layout) : dense(parameter, layout);
}

std::uint64_t stored_elements(const ParameterClass& parameter, const TrainLayout& layout, std::uint32_t coordinate) {
    const auto tp = parameter.is_expert() ? layout.etp : layout.tp;
    if (parameter.sharding == Sharding::kVocabulary) {
        const auto rows = padded_rows(parameter.shape[0], trainer_vocabulary_multiple(parameter.shape[0], tp));
        return rows / tp * (parameter.elements() / parameter.shape[0]);
    }
    std::uint64_t elements = 0;
    for (const auto& box : boxes_of(parameter, Box::whole(parameter.shape), 0, tp, coordinate)) {
        elements += box.volume();
    }
    return elements;
}

}  // namespace refit::megatron
