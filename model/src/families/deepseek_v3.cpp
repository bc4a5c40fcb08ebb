// SPDX-License-Identifier: Apache-2.0
// DeepSeek-V3 and Kimi-K2: multi-head latent attention, dense first layers, routed and shared experts, MTP.
#include "builder.hpp"
#include "checks.hpp"
#include "family.hpp"

namespace refit::families {
namespace {

struct Dimensions {
    std::uint64_t hidden, layers, vocabulary, heads, query_rank, kv_rank, nope, rope, value;
    std::uint64_t dense_width, dense_layers, experts, expert_width, shared_experts, mtp_layers;
};

Dimensions read(const Facts& facts, Faults& faults) {
    return {.hidden = facts.positive("hidden_size", faults),
            .layers = layer_count(facts, "num_hidden_layers", faults),
            .vocabulary = facts.positive("vocab_size", faults),
            .heads = facts.positive("num_attention_heads", faults),
            .query_rank = facts.positive("q_lora_rank", faults),
            .kv_rank = facts.positive("kv_lora_rank", faults),
            .nope = facts.positive("qk_nope_head_dim", faults),
            .rope = facts.positive("qk_rope_head_dim", faults),
            .value = facts.positive("v_head_dim", faults),
            .dense_width = facts.positive("intermediate_size", faults),
            .dense_layers = facts.natural_or("first_k_dense_replace", 0, faults),
            .experts = facts.positive("n_routed_experts", faults),
            .expert_width = facts.positive("moe_intermediate_size", faults),
            .shared_experts = facts.natural_or("n_shared_experts", 0, faults),
            .mtp_layers = layer_count_or_none(facts, "num_nextn_predict_layers", faults)};
}

void add_attention(Builder& builder, const Dimensions& d) {
    builder.replicated("input_layernorm.weight", {d.hidden});
    builder.latent_attention("self_attn.",
                             {.hidden = d.hidden,
                              .heads = d.heads,
                              .query_rank = d.query_rank,
                              .kv_rank = d.kv_rank,
                              .nope = d.nope,
                              .rope = d.rope,
                              .value = d.value});
    builder.replicated("post_attention_layernorm.weight", {d.hidden});
}

void add_moe(Builder& builder, const Dimensions& d) {
    builder.replicated("mlp.gate.weight", {d.experts, d.hidden});
    builder.replicated("mlp.gate.e_score_correction_bias", {d.experts}).dtype = Dtype::kFp32;
    builder.experts("mlp.experts.", {"gate_proj.weight", "up_proj.weight", "down_proj.weight"}, d.experts, d.hidden,
                    d.expert_width);
    if (d.shared_experts > 0) {
        builder.mlp("mlp.shared_experts.", d.hidden, d.shared_experts * d.expert_width, true, false);
    }
}

/// The MTP module follows the last layer: a whole MoE layer with copies of the embedding and the head.
void add_mtp(Builder& builder, const Dimensions& d) {
    builder.enter("model.layers.{layer}.", layer_range(d.layers, d.layers + d.mtp_layers), ModelPart::kMtp);
    add_attention(builder, d);
    add_moe(builder, d);
    builder.replicated("eh_proj.weight", {d.hidden, 2 * d.hidden});
    builder.replicated("enorm.weight", {d.hidden});
    builder.replicated("hnorm.weight", {d.hidden});
    builder.replicated("shared_head.norm.weight", {d.hidden});
    builder.vocabulary("embed_tokens.weight", {d.vocabulary, d.hidden});
    builder.vocabulary("shared_head.head.weight", {d.vocabulary, d.hidden});
}

/// The public checkpoints quantise every projection; embedding, head, router and MTP's joint stay in BF16.
void store_projections_as_fp8(std::vector<ParameterClass>& classes) {
    for (auto& entry : classes) {
        const bool is_projection = entry.shape.size() == 2 && entry.sharding != Sharding::kVocabulary &&
                                   !entry.name.ends_with("mlp.gate.weight") && !entry.name.ends_with("eh_proj.weight");
        entry.native = is_projection ? NativeStorage::kFp8Blocks : NativeStorage::kPlain;
    }
}

}  // namespace

Parameters deepseek_v3(const Facts& facts, Faults& faults) {
    const auto d = read(facts, faults);
    if (faults.empty()) {
        expect_at_most(facts, "first_k_dense_replace", d.dense_layers, "num_hidden_layers", d.layers, faults);
    }
    if (!faults.empty()) {
        return {};
    }
    Builder builder;
    builder.enter_outside("model.", false);
    builder.vocabulary("embed_tokens.weight", {d.vocabulary, d.hidden});
    builder.enter("model.layers.{layer}.", layer_range(0, d.layers));
    add_attention(builder, d);
    if (d.dense_layers > 0) {
        builder.enter("model.layers.{layer}.", layer_range(0, d.dense_layers));
        builder.mlp("mlp.", d.hidden, d.dense_width, true, true);
    }
    if (d.dense_layers < d.layers) {
        builder.enter("model.layers.{layer}.", layer_range(d.dense_layers, d.layers));
        add_moe(builder, d);
    }
    builder.enter_outside("", true);
    builder.replicated("model.norm.weight", {d.hidden});
    builder.vocabulary("lm_head.weight", {d.vocabulary, d.hidden});
    if (d.mtp_layers > 0) {
        add_mtp(builder, d);
    }
    auto classes = std::move(builder).finish();
    if (is_fp8_in_blocks(facts, "", faults)) {
        store_projections_as_fp8(classes);
    }
    return {static_cast<std::uint32_t>(d.layers), std::move(classes)};
}

}  // namespace refit::families
