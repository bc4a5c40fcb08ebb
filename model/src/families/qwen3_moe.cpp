// SPDX-License-Identifier: Apache-2.0
// Qwen3-MoE: grouped-query attention with norms on q and k, and routed experts without a shared one.
#include <algorithm>

#include "builder.hpp"
#include "checks.hpp"
#include "family.hpp"

namespace refit::families {
namespace {

struct Dimensions {
    std::uint64_t hidden, layers, vocabulary, heads, kv_heads, head_size, experts, expert_width, sparse_step;
    bool is_tied;
    Layers dense_layers, moe_layers;
};

Dimensions read(const Facts& facts, Faults& faults) {
    expect_flag(facts, "attention_bias", false, faults);
    return {
        .hidden = facts.positive("hidden_size", faults),
        .layers = layer_count(facts, "num_hidden_layers", faults),
        .vocabulary = facts.positive("vocab_size", faults),
        .heads = facts.positive("num_attention_heads", faults),
        .kv_heads = facts.positive("num_key_value_heads", faults),
        .head_size = facts.positive("head_dim", faults),
        .experts = facts.positive("num_experts", faults),
        .expert_width = facts.positive("moe_intermediate_size", faults),
        .sparse_step = facts.has("decoder_sparse_step") ? facts.positive("decoder_sparse_step", faults) : 1,
        .is_tied = facts.flag_or("tie_word_embeddings", false, faults),
        .dense_layers = {},
        .moe_layers = {}};
}

/// Layer i has experts unless `mlp_only_layers` names it, or i + 1 is no multiple of `decoder_sparse_step`.
/// Source: configuration_qwen3_moe.py of Hugging Face transformers.
void split_layers(const Facts& facts, Dimensions& d, Faults& faults) {
    std::vector<std::int64_t> dense;
    if (facts.has("mlp_only_layers")) {
        dense = facts.numbers("mlp_only_layers", faults);
    }
    for (const auto layer : dense) {
        if (layer < 0 || layer >= static_cast<std::int64_t>(d.layers)) {
            refuse(facts,
                   "'mlp_only_layers' names layer " + std::to_string(layer) + ", but the layers are 0 to " +
                       std::to_string(d.layers - 1),
                   faults);
        }
    }
    for (const auto layer : layer_range(0, d.layers)) {
        const bool is_dense =
            std::ranges::find(dense, layer) != dense.end() || (layer + 1) % d.sparse_step != 0;
        (is_dense ? d.dense_layers : d.moe_layers).push_back(layer);
    }
}

void add_attention(Builder& builder, const Dimensions& d) {
    builder.replicated("input_layernorm.weight", {d.hidden});
    builder.attention_projections("self_attn.",
                                  {.query = d.heads,
                                   .key_value = d.kv_heads,
                                   .rows_per_query_head = d.head_size,
                                   .rows_per_key_value_head = d.head_size},
                                  d.hidden);
    builder.replicated("self_attn.q_norm.weight", {d.head_size});
    builder.replicated("self_attn.k_norm.weight", {d.head_size});
    builder.row("self_attn.o_proj.weight", {d.hidden, d.heads * d.head_size}, d.heads, "attention heads");
    builder.replicated("post_attention_layernorm.weight", {d.hidden});
}

void add_moe(Builder& builder, const Dimensions& d) {
    builder.replicated("mlp.gate.weight", {d.experts, d.hidden});
    builder.experts("mlp.experts.",
                    {"gate_proj.weight", "up_proj.weight", "down_proj.weight"},
                    d.experts,
                    d.hidden,
                    d.expert_width);
}

}  // namespace

Parameters qwen3_moe(const Facts& facts, Faults& faults) {
    auto d = read(facts, faults);
    if (faults.empty()) {
        expect_multiple(facts, "num_attention_heads", d.heads, "num_key_value_heads", d.kv_heads, faults);
        split_layers(facts, d, faults);
    }
    const auto dense_width = d.dense_layers.empty() ? 1 : facts.positive("intermediate_size", faults);
    if (!faults.empty()) {
        return {};
    }
    Builder builder;
    builder.enter_outside("model.", false);
    builder.vocabulary("embed_tokens.weight", {d.vocabulary, d.hidden}).is_tied = d.is_tied;
    builder.enter("model.layers.{layer}.", layer_range(0, d.layers));
    add_attention(builder, d);
    if (!d.dense_layers.empty()) {
        builder.enter("model.layers.{layer}.", d.dense_layers);
        builder.mlp("mlp.", d.hidden, dense_width, true, true);
    }
    if (!d.moe_layers.empty()) {
        builder.enter("model.layers.{layer}.", d.moe_layers);
        add_moe(builder, d);
    }
    builder.enter_outside("", true);
    builder.replicated("model.norm.weight", {d.hidden});
    if (!d.is_tied) {
        builder.vocabulary("lm_head.weight", {d.vocabulary, d.hidden});
    }
    auto classes = std::move(builder).finish();
    mark_projections(classes);
    return {static_cast<std::uint32_t>(d.layers), std::move(classes)};
}

}  // namespace refit::families
