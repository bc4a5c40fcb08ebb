// SPDX-License-Identifier: Apache-2.0
#include "refit/megatron.hpp"

#include <algorithm>
#include <utility>

#include "cuts.hpp"

namespace refit::megatron {
namespace {

constexpr std::uint64_t kVocabularyMultiple = 128;

/// Rows of the q, k or v projection that lie in rows [begin, end) of the fused, per-KV-group weight,
/// whose groups are stored as [q heads of the group, k, v].
std::vector<Interval> rows_in_fused_cut(const ParameterClass& parameter, Interval cut) {
    const auto& heads = parameter.heads;
    const auto query_rows = heads.query / heads.key_value * heads.rows_per_query_head;
    const auto key_rows = heads.rows_per_key_value_head;
    const auto group_rows = query_rows + 2 * key_rows;
    const bool is_query = parameter.sharding == Sharding::kQuery;
    const auto band_rows = is_query ? query_rows : key_rows;
    const auto band_begin = is_query ? 0 : query_rows + (parameter.sharding == Sharding::kValue ? key_rows : 0);
    std::vector<Interval> rows;
    for (std::uint64_t group = cut.begin / group_rows; group < heads.key_value; ++group) {
        const auto band = group * group_rows + band_begin;
        const auto begin = std::max(cut.begin, band);
        const auto end = std::min(cut.end, band + band_rows);
        if (begin < end) {
            rows.push_back({group * band_rows + (begin - band), group * band_rows + (end - band)});
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
        case Sharding::kReplicated:
            break;
        case Sharding::kVocabulary: {
            const auto part = padded_part(parameter.shape[0], kVocabularyMultiple * tp, tp, coordinate);
            return part.length() == 0 ? std::vector<Box>{} : std::vector{whole.with(first, part)};
        }
        case Sharding::kColumn:
            if (!parameter.segments.empty()) {
                return segment_parts(whole, first, parameter.segments, tp, coordinate);
            }
            return {whole.with(first, equal_part(parameter.shape[0], tp, coordinate))};
        case Sharding::kRow:
            return {whole.with(first + 1, equal_part(parameter.shape[1], tp, coordinate))};
        case Sharding::kQuery:
        case Sharding::kKey:
        case Sharding::kValue:
            return fused_attention_part(parameter, whole, tp, coordinate);
    }
    return {whole};
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
        const auto multiple = kVocabularyMultiple * tp;
        const auto rows = (parameter.shape[0] + multiple - 1) / multiple * kVocabularyMultiple;
        return rows * (parameter.elements() / parameter.shape[0]);
    }
    std::uint64_t elements = 0;
    for (const auto& box : boxes_of(parameter, Box::whole(parameter.shape), 0, tp, coordinate)) {
        elements += box.volume();
    }
    return elements;
}

}  // namespace refit::megatron
