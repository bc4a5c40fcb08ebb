// SPDX-License-Identifier: Apache-2.0
// Llama-3, Qwen2.5, Qwen3 dense and GLM-4-0414: grouped-query attention and a gated MLP in every layer.
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

/// In what the dense families differ.
struct Traits {
    bool has_biases = false;      ///< q, k and v have biases.
    bool has_head_norms = false;  ///< q and k are normalised by head.
    bool is_sandwich = false;     ///< Norms behind attention and MLP too, and gate and up stored as one tensor.
};

/// GLM-4 stores gate above up in one tensor; training and vLLM cut each of them.
void add_joined_mlp(Builder& builder, const Dimensions& d) {
    builder.segmented("mlp.gate_up_proj.weight", {2 * d.width, d.hidden}, {d.width, d.width}, d.width, "MLP width")
        .is_ffn = true;
    builder.row("mlp.down_proj.weight", {d.hidden, d.width}, d.width, "MLP width").is_ffn = true;
    builder.replicated("post_mlp_layernorm.weight", {d.hidden});
}

Parameters dense(const Facts& facts, const Traits& traits, Faults& faults) {
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
    if (traits.has_biases) {
        builder.attention_biases("self_attn.", heads);
    }
    if (traits.has_head_norms) {
        builder.replicated("self_attn.q_norm.weight", {d.head_size});
        builder.replicated("self_attn.k_norm.weight", {d.head_size});
    }
    builder.row("self_attn.o_proj.weight", {d.hidden, d.heads * d.head_size}, d.heads, "attention heads");
    if (traits.is_sandwich) {
        builder.replicated("post_self_attn_layernorm.weight", {d.hidden});
    }
    builder.replicated("post_attention_layernorm.weight", {d.hidden});
    if (traits.is_sandwich) {
        add_joined_mlp(builder, d);
    } else {
        builder.mlp("mlp.", d.hidden, d.width, true, true);
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

}  // namespace

Parameters llama(const Facts& facts, Faults& faults) {
    expect_flag(facts, "attention_bias", false, faults);
    expect_flag(facts, "mlp_bias", false, faults);
    return dense(facts, {}, faults);
}

Parameters glm4(const Facts& facts, Faults& faults) {
    expect_flag(facts, "attention_bias", true, faults);
    return dense(facts, {.has_biases = true, .is_sandwich = true}, faults);
}

Parameters qwen2(const Facts& facts, Faults& faults) { return dense(facts, {.has_biases = true}, faults); }

Parameters qwen3(const Facts& facts, Faults& faults) {
    expect_flag(facts, "attention_bias", false, faults);
    return dense(facts, {.has_head_norms = true}, faults);
}

}  // namespace refit::families
