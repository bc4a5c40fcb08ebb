// SPDX-License-Identifier: Apache-2.0
// Llama-3, Qwen2.5 and Qwen3 dense: grouped-query attention and a gated MLP in every layer.
#include "builder.hpp"
#include "checks.hpp"
#include "family.hpp"

namespace refit::families {
namespace {

struct Dimensions {
    std::uint64_t hidden, layers, vocabulary, heads, kv_heads, head_size, width;
    bool is_tied;
};

/// Llama and Qwen2 configs leave head_dim out where it is hidden_size / num_attention_heads.
Dimensions read(const Facts& facts, Faults& faults) {
    const auto hidden = facts.positive("hidden_size", faults);
    const auto heads = facts.positive("num_attention_heads", faults);
    if (!facts.has("head_dim")) {
        expect_multiple(facts, "hidden_size", hidden, "num_attention_heads", heads, faults);
    }
    return {.hidden = hidden,
            .layers = layer_count(facts, "num_hidden_layers", faults),
            .vocabulary = facts.positive("vocab_size", faults),
            .heads = heads,
            .kv_heads = facts.positive("num_key_value_heads", faults),
            .head_size = facts.has("head_dim") ? facts.positive("head_dim", faults) : hidden / heads,
            .width = facts.positive("intermediate_size", faults),
            .is_tied = facts.flag_or("tie_word_embeddings", false, faults)};
}

/// Biases of q, k and v are fused, and cut, as their weights are.
void add_biases(Builder& builder, const AttentionHeads& heads) {
    const auto add = [&](const char* name, Sharding sharding, std::uint64_t rows, std::uint64_t units) -> auto& {
        auto& bias = builder.column(name, {rows}, units, sharding == Sharding::kQuery ? "attention heads" : "KV heads");
        bias.sharding = sharding;
        bias.heads = heads;
        bias.task = ExportTask::kFusedMember;
        return bias;
    };
    add("self_attn.q_proj.bias", Sharding::kQuery, heads.query * heads.rows_per_query_head, heads.query).task =
        ExportTask::kFusedLeader;
    add("self_attn.k_proj.bias", Sharding::kKey, heads.key_value * heads.rows_per_key_value_head, heads.key_value);
    add("self_attn.v_proj.bias", Sharding::kValue, heads.key_value * heads.rows_per_key_value_head, heads.key_value);
}

Parameters dense(const Facts& facts, bool has_biases, bool has_head_norms, Faults& faults) {
    const auto d = read(facts, faults);
    if (!faults.empty()) {
        return {};
    }
    const AttentionHeads heads{.query = d.heads,
                               .key_value = d.kv_heads,
                               .rows_per_query_head = d.head_size,
                               .rows_per_key_value_head = d.head_size};
    Builder builder;
    builder.enter_outside("model.", false);
    builder.vocabulary("embed_tokens.weight", {d.vocabulary, d.hidden}).is_tied = d.is_tied;
    builder.enter("model.layers.{layer}.", layer_range(0, d.layers));
    builder.replicated("input_layernorm.weight", {d.hidden});
    builder.attention_projections("self_attn.", heads, d.hidden);
    if (has_biases) {
        add_biases(builder, heads);
    }
    if (has_head_norms) {
        builder.replicated("self_attn.q_norm.weight", {d.head_size});
        builder.replicated("self_attn.k_norm.weight", {d.head_size});
    }
    builder.row("self_attn.o_proj.weight", {d.hidden, d.heads * d.head_size}, d.heads, "attention heads");
    builder.replicated("post_attention_layernorm.weight", {d.hidden});
    builder.mlp("mlp.", d.hidden, d.width, true, true);
    builder.enter_outside("", true);
    builder.replicated("model.norm.weight", {d.hidden});
    if (!d.is_tied) {
        builder.vocabulary("lm_head.weight", {d.vocabulary, d.hidden});
    }
    return {static_cast<std::uint32_t>(d.layers), std::move(builder).finish()};
}

}  // namespace

Parameters llama(const Facts& facts, Faults& faults) {
    expect_flag(facts, "attention_bias", false, faults);
    expect_flag(facts, "mlp_bias", false, faults);
    return dense(facts, false, false, faults);
}

Parameters qwen2(const Facts& facts, Faults& faults) { return dense(facts, true, false, faults); }

Parameters qwen3(const Facts& facts, Faults& faults) {
    expect_flag(facts, "attention_bias", false, faults);
    return dense(facts, false, true, faults);
}

}  // namespace refit::families
