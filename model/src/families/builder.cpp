// SPDX-License-Identifier: Apache-2.0
#include "builder.hpp"

#include <numeric>

namespace refit::families {

Layers layer_range(std::uint64_t first, std::uint64_t last) {
    Layers layers(static_cast<std::size_t>(last > first ? last - first : 0));
    std::iota(layers.begin(), layers.end(), static_cast<std::uint32_t>(first));
    return layers;
}

void Builder::enter(std::string prefix, Layers layers, ModelPart part) {
    prefix_ = std::move(prefix);
    layers_ = std::move(layers);
    part_ = part;
    on_last_stage_ = false;
}

void Builder::enter_outside(std::string prefix, bool on_last_stage, ModelPart part) {
    enter(std::move(prefix), {}, part);
    on_last_stage_ = on_last_stage;
}

ParameterClass& Builder::add(std::string name, Shape shape, Sharding sharding) {
    ParameterClass entry;
    entry.name = prefix_ + std::move(name);
    entry.shape = std::move(shape);
    entry.part = part_;
    entry.sharding = sharding;
    entry.layers = layers_;
    entry.on_last_stage = on_last_stage_;
    return classes_.emplace_back(std::move(entry));
}

ParameterClass& Builder::replicated(std::string name, Shape shape) {
    return add(std::move(name), std::move(shape), Sharding::kReplicated);
}

ParameterClass& Builder::vocabulary(std::string name, Shape shape) {
    auto& entry = add(std::move(name), std::move(shape), Sharding::kVocabulary);
    entry.units_name = "vocabulary rows";
    return entry;
}

ParameterClass& Builder::column(std::string name, Shape shape, std::uint64_t units, std::string units_name) {
    auto& entry = add(std::move(name), std::move(shape), Sharding::kColumn);
    entry.units = units == 0 ? entry.shape.front() : units;
    entry.units_name = std::move(units_name);
    return entry;
}

ParameterClass& Builder::row(std::string name, Shape shape, std::uint64_t units, std::string units_name) {
    auto& entry = add(std::move(name), std::move(shape), Sharding::kRow);
    entry.units = units == 0 ? entry.shape.at(1) : units;
    entry.units_name = std::move(units_name);
    return entry;
}

ParameterClass& Builder::segmented(std::string name, Shape shape, Shape segments, std::uint64_t units,
                                   std::string units_name) {
    auto& entry = column(std::move(name), std::move(shape), units, std::move(units_name));
    entry.segments = std::move(segments);
    return entry;
}

void Builder::attention_projections(std::string prefix, const AttentionHeads& heads, std::uint64_t hidden) {
    const auto project = [&](const char* name, Sharding sharding, std::uint64_t count, std::uint64_t rows) -> auto& {
        auto& entry = add(prefix + name, {count * rows, hidden}, sharding);
        entry.heads = heads;
        entry.units = count;
        entry.units_name = sharding == Sharding::kQuery ? "attention heads" : "KV heads";
        entry.task = ExportTask::kFusedMember;
        return entry;
    };
    project("q_proj.weight", Sharding::kQuery, heads.query, heads.rows_per_query_head).task = ExportTask::kFusedLeader;
    project("k_proj.weight", Sharding::kKey, heads.key_value, heads.rows_per_key_value_head);
    project("v_proj.weight", Sharding::kValue, heads.key_value, heads.rows_per_key_value_head);
}

void Builder::attention_biases(const std::string& prefix, const AttentionHeads& heads) {
    const auto add_bias = [&](const char* name, Sharding sharding, std::uint64_t count, std::uint64_t rows) -> auto& {
        auto& bias = add(prefix + name, {count * rows}, sharding);
        bias.heads = heads;
        bias.units = count;
        bias.units_name = sharding == Sharding::kQuery ? "attention heads" : "KV heads";
        bias.task = ExportTask::kFusedMember;
        return bias;
    };
    add_bias("q_proj.bias", Sharding::kQuery, heads.query, heads.rows_per_query_head).task = ExportTask::kFusedLeader;
    add_bias("k_proj.bias", Sharding::kKey, heads.key_value, heads.rows_per_key_value_head);
    add_bias("v_proj.bias", Sharding::kValue, heads.key_value, heads.rows_per_key_value_head);
}

void Builder::latent_attention(const std::string& prefix, const LatentAttention& d) {
    const std::string heads = "attention heads";
    const auto query_rows = d.heads * (d.nope + d.rope);
    if (d.query_rank == 0) {
        column(prefix + "q_proj.weight", {query_rows, d.hidden}, d.heads, heads);
    } else {
        replicated(prefix + "q_a_proj.weight", {d.query_rank, d.hidden});
        replicated(prefix + "q_a_layernorm.weight", {d.query_rank});
        column(prefix + "q_b_proj.weight", {query_rows, d.query_rank}, d.heads, heads);
    }
    replicated(prefix + "kv_a_proj_with_mqa.weight", {d.kv_rank + d.rope, d.hidden});
    replicated(prefix + "kv_a_layernorm.weight", {d.kv_rank});
    column(prefix + "kv_b_proj.weight", {d.heads * (d.nope + d.value), d.kv_rank}, d.heads, heads);
    row(prefix + "o_proj.weight", {d.hidden, d.heads * d.value}, d.heads, heads);
}

void Builder::mlp(std::string prefix, std::uint64_t hidden, std::uint64_t width, bool gated, bool is_ffn) {
    const std::string units = is_ffn ? "MLP width" : "shared expert width";
    if (gated) {
        auto& gate = column(prefix + "gate_proj.weight", {width, hidden}, width, units);
        gate.is_ffn = is_ffn;
        gate.task = ExportTask::kFusedLeader;
    }
    auto& up = column(prefix + "up_proj.weight", {width, hidden}, width, units);
    up.is_ffn = is_ffn;
    up.task = gated ? ExportTask::kFusedMember : ExportTask::kOwn;
    row(prefix + "down_proj.weight", {hidden, width}, width, units).is_ffn = is_ffn;
}

void Builder::experts(std::string prefix, const ExpertNames& names, std::uint64_t count, std::uint64_t hidden,
                      std::uint64_t width) {
    const auto mark = [&](ParameterClass& entry, ExportTask task) {
        entry.is_ffn = true;
        entry.experts = static_cast<std::uint32_t>(count);
        entry.task = task;
    };
    const bool gated = !names.gate.empty();
    prefix += "{expert}.";
    if (gated) {
        mark(column(prefix + names.gate, {width, hidden}, width, "expert width"), ExportTask::kFusedLeader);
    }
    mark(column(prefix + names.up, {width, hidden}, width, "expert width"),
         gated ? ExportTask::kFusedMember : ExportTask::kOwn);
    mark(row(prefix + names.down, {hidden, width}, width, "expert width"), ExportTask::kOwn);
}

void Builder::biased_moe(const Moe& moe) {
    replicated("mlp.gate.weight", {moe.experts, moe.hidden});
    replicated("mlp.gate.e_score_correction_bias", {moe.experts}).dtype = Dtype::kFp32;
    experts("mlp.experts.", {"gate_proj.weight", "up_proj.weight", "down_proj.weight"}, moe.experts, moe.hidden,
            moe.expert_width);
    if (moe.shared_experts > 0) {
        mlp("mlp.shared_experts.", moe.hidden, moe.shared_experts * moe.expert_width, true, false);
    }
}

void Builder::mtp_joint(std::uint64_t hidden, std::uint64_t vocabulary_rows, bool has_copies) {
    replicated("eh_proj.weight", {hidden, 2 * hidden});
    replicated("enorm.weight", {hidden});
    replicated("hnorm.weight", {hidden});
    replicated("shared_head.norm.weight", {hidden});
    if (has_copies) {
        vocabulary("embed_tokens.weight", {vocabulary_rows, hidden});
        vocabulary("shared_head.head.weight", {vocabulary_rows, hidden});
    }
}

}  // namespace refit::families
