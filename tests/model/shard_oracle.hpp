// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "refit/distribution.hpp"
#include "refit/layout.hpp"
#include "small_models.hpp"

/// Who holds which element, said once more: slowly, row by row, from a tensor's name and the two frameworks'
/// rules, and without the code under test. Only the logical shape (experts stacked as first axis) is agreed
/// upon.
namespace refit::testing_oracle {

using testing_models::SmallModel;

/// One flag an element, in row-major order of the logical shape.
using Held = std::vector<char>;

struct Heads {
    std::uint64_t query = 0, key_value = 0, size = 0;
    bool has_gate = false;
};

/// For each row of the q, k or v projection (`which`) its row in Megatron's fused weight: of each KV group
/// all queries, then all output gates, then k, then v. A head of q_proj holds its queries and then its gate.
inline std::vector<std::uint64_t> fused_rows(char which, const Heads& h) {
    const auto per_group = h.query / h.key_value;
    const auto stored = (h.has_gate ? 2 : 1) * h.size;
    std::vector<std::uint64_t> rows((which == 'q' ? h.query * stored : h.key_value * h.size));
    std::uint64_t next = 0;
    for (std::uint64_t group = 0; group < h.key_value; ++group) {
        for (std::uint64_t half = 0; half < (h.has_gate ? 2U : 1U); ++half) {
            for (auto head = group * per_group; head < (group + 1) * per_group; ++head) {
                for (std::uint64_t d = 0; d < h.size; ++d, ++next) {
                    if (which == 'q') {
                        rows[head * stored + half * h.size + d] = next;
                    }
                }
            }
        }
        for (const char band : {'k', 'v'}) {
            for (std::uint64_t d = 0; d < h.size; ++d, ++next) {
                if (which == band) {
                    rows[group * h.size + d] = next;
                }
            }
        }
    }
    return rows;
}

inline char projection_of(std::string_view name) {
    return name[name.rfind("_proj.") - 1];
}

enum class Cut { kNone, kVocabulary, kRows, kColumns, kParts, kFusedAttention };

struct Rule {
    Cut cut = Cut::kNone;
    std::vector<std::uint64_t> parts = {};  ///< For kParts: rows of each part; rows beyond belong to nobody.
    Heads heads = {};                       ///< For kFusedAttention, as all that follows.
    char projection = 0;                    ///< 'q', 'k' or 'v'.
    std::vector<std::uint64_t> fused = {};  ///< Row in the fused weight of each of the projection's rows.

    [[nodiscard]] std::uint64_t fused_total() const {
        return (heads.query * (heads.has_gate ? 2 : 1) + 2 * heads.key_value) * heads.size;
    }
};

/// `rows` and as many more as make a multiple of `multiple`.
inline std::uint64_t padded(std::uint64_t rows, std::uint64_t multiple) {
    while (rows % multiple != 0) {
        ++rows;
    }
    return rows;
}

inline bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> endings) {
    for (const auto ending : endings) {
        if (name.ends_with(ending)) {
            return true;
        }
    }
    return false;
}

/// The rows of fused state-space tensors that are cut apart.
inline Rule state_space_rule(std::string_view name, const SmallModel& m) {
    if (m.model_type() == "nemotron_h") {
        const auto width = m.fact("mamba_num_heads") * m.fact("mamba_head_dim");
        const auto shared = m.fact("n_groups") * m.fact("ssm_state_size");
        if (name.ends_with("in_proj.weight")) {
            return {Cut::kParts, {width, width, shared, shared, m.fact("mamba_num_heads")}};
        }
        return {Cut::kParts, {width, shared, shared}};
    }
    const auto keys = m.fact("linear_num_key_heads") * m.fact("linear_key_head_dim");
    return {Cut::kParts, {keys, keys, m.fact("linear_num_value_heads") * m.fact("linear_value_head_dim")}};
}

inline Rule attention_rule(std::string_view name, const SmallModel& m) {
    const bool is_k3 = m.model_type() == "kimi_k3";
    const bool is_latent = m.facts.has("kv_lora_rank");
    if (ends_with_any(name,
                      {".q_proj.weight",
                       ".k_proj.weight",
                       ".v_proj.weight",
                       ".q_proj.bias",
                       ".k_proj.bias",
                       ".v_proj.bias"})) {
        if (is_k3 || is_latent) {
            return {Cut::kRows};
        }
        const Heads heads{m.fact("num_attention_heads"),
                          m.fact("num_key_value_heads"),
                          m.fact("head_dim"),
                          m.model_type().starts_with("qwen3_5")};
        const auto projection = projection_of(name);
        return {Cut::kFusedAttention, {}, heads, projection, fused_rows(projection, heads)};
    }
    if (is_k3 && name.ends_with("A_log")) {
        return {Cut::kParts, {m.fact("text_config.linear_attn_config.num_heads")}};
    }
    if (ends_with_any(name,
                      {"mixer.in_proj.weight",
                       "mixer.conv1d.weight",
                       "mixer.conv1d.bias",
                       "in_proj_qkv.weight",
                       "linear_attn.conv1d.weight"})) {
        return state_space_rule(name, m);
    }
    if (ends_with_any(name,
                      {"q_b_proj.weight",
                       "kv_b_proj.weight",
                       "f_b_proj.weight",
                       ".b_proj.weight",
                       ".g_proj.weight",
                       "_conv1d.weight",
                       "A_log",
                       "dt_bias",
                       "mixer.D",
                       "mixer.norm.weight",
                       "in_proj_z.weight",
                       "in_proj_b.weight",
                       "in_proj_a.weight"})) {
        return {Cut::kRows};
    }
    return {};
}

inline Rule rule_of(std::string_view name, const SmallModel& m) {
    if (name.starts_with("vision_tower.") || name.starts_with("mm_projector.") ||
        name.starts_with("model.visual.") || name.find("routed_expert_") != std::string_view::npos) {
        return {};
    }
    if (ends_with_any(name, {"embed_tokens.weight", "embeddings.weight", "lm_head.weight"})) {
        return {Cut::kVocabulary};
    }
    if (name.ends_with("gate_up_proj.weight")) {
        return {Cut::kParts, {m.fact("intermediate_size"), m.fact("intermediate_size")}};
    }
    if (ends_with_any(name, {"gate_proj.weight", "up_proj.weight", ".w1.weight", ".w3.weight"})) {
        return {Cut::kRows};
    }
    if (ends_with_any(name, {"down_proj.weight", ".w2.weight", ".o_proj.weight", ".out_proj.weight"})) {
        return {Cut::kColumns};
    }
    return attention_rule(name, m);
}

/// A tensor as experts x rows x columns (all that follows dim 0).
struct Extent {
    std::uint64_t experts, rows, columns;
    explicit Extent(const ParameterClass& p)
        : experts{p.is_expert() ? p.experts : 1U}, rows{p.shape[0]}, columns{1} {
        for (std::size_t axis = 1; axis < p.shape.size(); ++axis) {
            columns *= p.shape[axis];
        }
    }
    [[nodiscard]] std::uint64_t size() const { return experts * rows * columns; }
};

/// Rank among `ways` that holds a row of parts that are cut apart, or `ways` for none.
inline std::uint64_t part_owner(std::uint64_t row,
                                const std::vector<std::uint64_t>& parts,
                                std::uint64_t ways) {
    for (const auto length : parts) {
        if (row < length) {
            return row / (length / ways);
        }
        row -= length;
    }
    return ways;
}

/// Marks what of one expert's (or the only) matrix the tensor-parallel rank `tp` of `ways` holds.
template <class OwnsRow>
void mark_matrix(Held& held,
                 std::uint64_t expert,
                 const Extent& extent,
                 bool cuts_columns,
                 std::uint64_t ways,
                 std::uint64_t tp,
                 const OwnsRow& owns_row) {
    const auto first = cuts_columns ? extent.columns / ways * tp : 0;
    const auto last = cuts_columns ? extent.columns / ways * (tp + 1) : extent.columns;
    for (std::uint64_t row = 0; row < extent.rows; ++row) {
        if (!cuts_columns && !owns_row(row)) {
            continue;
        }
        const auto begin =
            held.begin() + static_cast<std::ptrdiff_t>((expert * extent.rows + row) * extent.columns);
        std::fill(
            begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(last), char{1});
    }
}

/// What rank `rank` of a pipeline stage of trainers holds.
/// Random layouts of each model that are compared with the oracle.
constexpr int kLayouts = 200;

/// Random sizes of axes.
class Sizes {
public:
    explicit Sizes(std::mt19937& random) : random_{random} {}
    /// A number from 1 to `most`.
    std::uint32_t operator()(std::uint32_t most) {
        return std::uniform_int_distribution<std::uint32_t>{1, most}(random_);
    }

private:
    std::mt19937& random_;
};

/// What the bridge wants a vocabulary of so many rows to be divisible by: 128, or less where that divides it.
inline std::uint64_t bridge_divisor(std::uint64_t rows) {
    for (const std::uint64_t divisor : {128U, 64U, 32U, 16U, 8U, 4U, 2U}) {
        if (rows % divisor == 0) {
            return divisor;
        }
    }
    return 1;
}

/// Ranks: expert ranks run etp, ep, edp; others tp, then replicas.
inline Held held_by_trainer(const ParameterClass& p,
                            const Rule& rule,
                            const TrainLayout& l,
                            std::uint32_t rank) {
    const Extent extent{p};
    Held held(extent.size(), 0);
    const std::uint64_t ways = p.is_expert() ? l.etp : l.tp;
    const std::uint64_t tp = rank % ways;
    const std::uint64_t ep = rank / l.etp % l.ep;
    const auto vocabulary = rule.cut == Cut::kVocabulary ? padded(extent.rows, bridge_divisor(extent.rows) * ways) : 0;
    const auto owns_row = [&](std::uint64_t row) {
        switch (rule.cut) {
            case Cut::kVocabulary:
                return row / (vocabulary / ways) == tp;
            case Cut::kRows:
                return row / (extent.rows / ways) == tp;
            case Cut::kParts:
                return part_owner(row, rule.parts, ways) == tp;
            case Cut::kFusedAttention:
                return rule.fused[row] / (rule.fused_total() / ways) == tp;
            default:
                return true;
        }
    };
    for (std::uint64_t expert = 0; expert < extent.experts; ++expert) {
        if (!p.is_expert() || expert / (p.experts / l.ep) == ep) {
            mark_matrix(held, expert, extent, rule.cut == Cut::kColumns, ways, tp, owns_row);
        }
    }
    return held;
}

/// Expert-parallel rank that holds an expert: the first E mod EP ranks hold one more.
inline std::uint64_t linear_owner(std::uint64_t expert, std::uint64_t experts, std::uint64_t ep) {
    std::uint64_t first = 0;
    for (std::uint64_t owner = 0; owner < ep; ++owner) {
        first += experts / ep + (owner < experts % ep ? 1 : 0);
        if (expert < first) {
            return owner;
        }
    }
    return ep;
}

/// What generator `rank` holds of a tensor of pipeline stage `stage`; nothing where it runs another stage.
inline Held held_by_generator(const ParameterClass& p,
                              const Rule& rule,
                              const GenerateLayout& l,
                              std::uint32_t stage,
                              std::uint32_t rank) {
    const Extent extent{p};
    Held held(extent.size(), 0);
    if (rank / l.tp % l.pp != stage) {
        return held;
    }
    const std::uint64_t tp = rank % l.tp;
    if (p.is_expert() && l.ep > 1) {
        // With pipeline stages the group is the stage's own tensor-parallel one.
        const auto ep_rank = l.pp == 1 ? rank % l.ep : tp;
        for (std::uint64_t expert = 0; expert < extent.experts; ++expert) {
            const auto owner = l.expert_placement == ExpertPlacement::kRoundRobin
                                   ? expert % l.ep
                                   : linear_owner(expert, p.experts, l.ep);
            if (owner == ep_rank) {
                mark_matrix(held, expert, extent, false, 1, 0, [](std::uint64_t) { return true; });
            }
        }
        return held;
    }
    const auto vocabulary = padded(extent.rows, 64);
    const auto owns_row = [&](std::uint64_t row) {
        switch (rule.cut) {
            case Cut::kVocabulary:
                return row / (vocabulary / l.tp) == tp;
            case Cut::kRows:
                return row / (extent.rows / l.tp) == tp;
            case Cut::kParts:
                return part_owner(row, rule.parts, l.tp) == tp;
            case Cut::kFusedAttention:
                if (rule.projection == 'q' || rule.heads.key_value >= l.tp) {
                    return row / (extent.rows / l.tp) == tp;
                }
                return row / rule.heads.size == tp / (l.tp / rule.heads.key_value);
            default:
                return true;
        }
    };
    for (std::uint64_t expert = 0; expert < extent.experts; ++expert) {
        mark_matrix(held, expert, extent, rule.cut == Cut::kColumns, l.tp, tp, owns_row);
    }
    return held;
}

/// Elements that somebody has to hold: all but rows beyond the last part.
inline Held needed(const ParameterClass& p, const Rule& rule) {
    const Extent extent{p};
    Held all(extent.size(), 0);
    for (std::uint64_t i = 0; i < extent.size(); ++i) {
        const auto row = i / extent.columns % extent.rows;
        all[i] = rule.cut == Cut::kParts && part_owner(row, rule.parts, 1) == 1 ? 0 : 1;
    }
    return all;
}

/// Calls `visit(index)` for each element of a box within a logical shape, by counting up its coordinates.
template <class Visit>
void for_each_element(const Box& box, const std::vector<std::uint64_t>& shape, const Visit& visit) {
    if (box.volume() == 0) {
        return;
    }
    std::vector<std::uint64_t> at;
    for (const auto& axis : box.axes()) {
        at.push_back(axis.begin);
    }
    const auto last = box.axes().back();
    while (true) {
        std::uint64_t index = 0;
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
            index = index * shape[axis] + at[axis];
        }
        for (auto end = index + last.length(); index < end; ++index) {
            visit(index);
        }
        std::size_t axis = shape.size() - 1;
        while (axis > 0 && ++at[axis - 1] == box.axes()[axis - 1].end) {
            at[axis - 1] = box.axes()[axis - 1].begin;
            --axis;
        }
        if (axis == 0) {
            return;
        }
    }
}

/// The payload of a model and the rule for each of its classes.
struct RuledPayload {
    std::vector<ParameterClass> classes;
    std::vector<Rule> rules;
    std::vector<Held> all;  ///< What has to be held of each.

    explicit RuledPayload(const SmallModel& m) : classes{m.model.payload()} {
        for (const auto& p : classes) {
            rules.push_back(rule_of(p.name, m));
            all.push_back(needed(p, rules.back()));
        }
    }
};

/// What is wrong with the shards as such: an element in two of them or twice in one, a rank in two, ranks
/// that do not ascend, no member, no box. Empty where all is well.
inline std::string shard_fault(const Distribution& distribution, std::uint64_t size, std::uint32_t ranks) {
    const std::vector<std::uint64_t> shape{distribution.shape().begin(), distribution.shape().end()};
    Held seen(size, 0);
    std::vector<char> is_member(ranks, 0);
    for (const auto& shard : distribution.shards()) {
        if (shard.members.empty() || shard.boxes.empty()) {
            return "a shard without members or boxes";
        }
        for (std::size_t i = 0; i < shard.members.size(); ++i) {
            if (shard.members[i] >= ranks || (i > 0 && shard.members[i] <= shard.members[i - 1])) {
                return "members out of order or range";
            }
            if (std::exchange(is_member[shard.members[i]], 1) != 0) {
                return "rank " + std::to_string(shard.members[i]) + " stands in two shards";
            }
        }
        bool overlaps = false;
        for (const auto& box : shard.boxes) {
            for_each_element(box, shape, [&](std::uint64_t index) {
                overlaps = overlaps || std::exchange(seen.at(index), 1) != 0;
            });
        }
        if (overlaps) {
            return "two boxes overlap";
        }
    }
    return {};
}

inline void add(Held& held, const Held& more) {
    char* target = held.data();
    const char* source = more.data();
    for (auto left = held.size(); left > 0; --left) {
        *target++ |= *source++;
    }
}

/// Who holds what by the distribution, for each of `ranks`.
inline std::vector<Held> held_by_all(const Distribution& distribution,
                                     std::uint64_t size,
                                     std::uint32_t ranks) {
    const std::vector<std::uint64_t> shape{distribution.shape().begin(), distribution.shape().end()};
    std::vector<Held> held(ranks, Held(size, 0));
    for (const auto& shard : distribution.shards()) {
        Held elements(size, 0);
        for (const auto& box : shard.boxes) {
            for_each_element(box, shape, [&](std::uint64_t index) { elements.at(index) = 1; });
        }
        for (const auto member : shard.members) {
            held.at(member) = elements;
        }
    }
    return held;
}

/// Whether tensor parallelism of `ways` may cut the class at all, by the units of heads, groups and widths.
inline bool divides(const ParameterClass& p, const Rule& rule, std::uint64_t ways, bool trains) {
    switch (rule.cut) {
        case Cut::kNone:
            return true;
        case Cut::kVocabulary:
            return trains || padded(p.shape[0], 64) % ways == 0;
        case Cut::kFusedAttention: {
            const auto& h = rule.heads;
            return h.query % ways == 0 && (h.key_value % ways == 0 || ways % h.key_value == 0) &&
                   (!trains || h.key_value % ways == 0 || rule.fused_total() % ways == 0);
        }
        default:
            return p.units % ways == 0;
    }
}

}  // namespace refit::testing_oracle
