// SPDX-License-Identifier: Apache-2.0
// GLM-4.5: grouped-query attention with biases, dense first layers, routed and shared experts, MTP.
#include "builder.hpp"
#include "checks.hpp"
#include "family.hpp"

namespace refit::families {
namespace {

struct Dimensions {
    AttentionHeads heads;
    std::uint64_t layers, vocabulary, head_size, dense_width, dense_layers, mtp_layers;
    Builder::Moe moe;
    bool has_head_norms;

    [[nodiscard]] std::uint64_t hidden() const noexcept { return moe.hidden; }
};

Dimensions read(const Facts& facts, Faults& faults) {
    expect_flag(facts, "attention_bias", true, faults);
    expect_flag(facts, "tie_word_embeddings", false, faults);
    const auto head_size = facts.positive("head_dim", faults);
    return {.heads = {.query = facts.positive("num_attention_heads", faults),
                      .key_value = facts.positive("num_key_value_heads", faults),
                      .rows_per_query_head = head_size,
                      .rows_per_key_value_head = head_size},
            .layers = layer_count(facts, "num_hidden_layers", faults),
            .vocabulary = facts.positive("vocab_size", faults),
            .head_size = head_size,
            .dense_width = facts.positive("intermediate_size", faults),
            .dense_layers = facts.natural_or("first_k_dense_replace", 0, faults),
            .mtp_layers = layer_count_or_none(facts, "num_nextn_predict_layers", faults),
            .moe = {.hidden = facts.positive("hidden_size", faults),
                    .experts = facts.positive("n_routed_experts", faults),
                    .expert_width = facts.positive("moe_intermediate_size", faults),
                    .shared_experts = facts.natural_or("n_shared_experts", 0, faults)},
            .has_head_norms = facts.flag_or("use_qk_norm", false, faults)};
}

void add_attention(Builder& builder, const Dimensions& d) {
    builder.replicated("input_layernorm.weight", {d.hidden()});
    builder.attention_projections("self_attn.", d.heads, d.hidden());
    builder.attention_biases("self_attn.", d.heads);
    if (d.has_head_norms) {
        builder.replicated("self_attn.q_norm.weight", {d.head_size});
        builder.replicated("self_attn.k_norm.weight", {d.head_size});
    }
    builder.row("self_attn.o_proj.weight",
                {d.hidden(), d.heads.query * d.head_size},
                d.heads.query,
                "attention heads");
    builder.replicated("post_attention_layernorm.weight", {d.hidden()});
}

void add_layers(Builder& builder, const Dimensions& d) {
    const std::string prefix = "model.layers.{layer}.";
    builder.enter(prefix, layer_range(0, d.layers));
    add_attention(builder, d);
    if (d.dense_layers > 0) {
        builder.enter(prefix, layer_range(0, d.dense_layers));
        builder.mlp("mlp.", d.hidden(), d.dense_width, true, true);
    }
    if (d.dense_layers < d.layers) {
        builder.enter(prefix, layer_range(d.dense_layers, d.layers));
        builder.biased_moe(d.moe);
    }
}

}  // namespace

Parameters glm4_moe(const Facts& facts, Faults& faults) {
    const auto d = read(facts, faults);
    if (faults.empty()) {
        expect_multiple(
            facts, "num_attention_heads", d.heads.query, "num_key_value_heads", d.heads.key_value, faults);
        expect_at_most(facts, "first_k_dense_replace", d.dense_layers, "num_hidden_layers", d.layers, faults);
    }
    if (!faults.empty()) {
        return {};
    }
    Builder builder;
    builder.enter_outside("model.", false);
    builder.vocabulary("embed_tokens.weight", {d.vocabulary, d.hidden()});
    add_layers(builder, d);
    builder.enter_outside("", true);
    builder.replicated("model.norm.weight", {d.hidden()});
    builder.vocabulary("lm_head.weight", {d.vocabulary, d.hidden()});
    if (d.mtp_layers > 0) {
        // MTP follows the last layer: a whole MoE layer with copies of the embedding and the head.
        builder.enter(
            "model.layers.{layer}.", layer_range(d.layers, d.layers + d.mtp_layers), ModelPart::kMtp);
        add_attention(builder, d);
        builder.biased_moe(d.moe);
        builder.mtp_joint(d.hidden(), d.vocabulary, true);
    }
    auto classes = std::move(builder).finish();
    mark_projections(classes);
    return {static_cast<std::uint32_t>(d.layers), std::move(classes)};
}

}  // namespace refit::families
