// SPDX-License-Identifier: Apache-2.0
// Qwen3.5-MoE, text only (Qwen3.8-2.4T-A95B): Gated DeltaNet layers, every fourth layer full attention with
// an output gate, routed experts and a gated shared one, MTP. Experts are counted as the trainers export
// them, one tensor for each expert and projection; the BF16 checkpoints on the hub hold them grouped.
#include "builder.hpp"
#include "checks.hpp"
#include "family.hpp"

namespace refit::families {
namespace {

constexpr const char* kLinear = "linear_attention";
constexpr const char* kFull = "full_attention";

struct Dimensions {
    std::uint64_t hidden, layers, vocabulary, heads, kv_heads, head_size;
    std::uint64_t key_heads, key_size, value_heads, value_size, convolution;
    std::uint64_t experts, expert_width, shared_width, mtp_layers;
    bool has_output_gate, is_tied;
    std::vector<std::string> kinds;
};

/// Kinds of the layers: listed, or every `full_attention_interval`-th one full attention.
std::vector<std::string> read_kinds(const Facts& facts, std::uint64_t layers, Faults& faults) {
    if (facts.has("layer_types")) {
        auto kinds = facts.texts("layer_types", faults);
        expect_kinds(facts, "layer_types", kinds, {kLinear, kFull}, faults);
        return kinds;
    }
    const auto interval = facts.positive("full_attention_interval", faults);
    std::vector<std::string> kinds;
    for (std::uint64_t layer = 0; layer < layers; ++layer) {
        kinds.emplace_back((layer + 1) % interval == 0 ? kFull : kLinear);
    }
    return kinds;
}

Dimensions read(const Facts& facts, Faults& faults) {
    expect_flag(facts, "attention_bias", false, faults);
    Dimensions d{.hidden = facts.positive("hidden_size", faults),
                 .layers = layer_count(facts, "num_hidden_layers", faults),
                 .vocabulary = facts.positive("vocab_size", faults),
                 .heads = facts.positive("num_attention_heads", faults),
                 .kv_heads = facts.positive("num_key_value_heads", faults),
                 .head_size = facts.positive("head_dim", faults),
                 .key_heads = facts.positive("linear_num_key_heads", faults),
                 .key_size = facts.positive("linear_key_head_dim", faults),
                 .value_heads = facts.positive("linear_num_value_heads", faults),
                 .value_size = facts.positive("linear_value_head_dim", faults),
                 .convolution = facts.positive("linear_conv_kernel_dim", faults),
                 .experts = facts.positive("num_experts", faults),
                 .expert_width = facts.positive("moe_intermediate_size", faults),
                 .shared_width = facts.positive("shared_expert_intermediate_size", faults),
                 .mtp_layers = layer_count_or_none(facts, "mtp_num_hidden_layers", faults),
                 .has_output_gate = facts.flag_or("attn_output_gate", true, faults),
                 .is_tied = facts.flag_or("tie_word_embeddings", false, faults),
                 .kinds = {}};
    d.kinds = read_kinds(facts, d.layers, faults);
    return d;
}

void check(const Facts& facts, const Dimensions& d, Faults& faults) {
    expect_length(facts, "layer_types", d.kinds.size(), d.layers, faults);
    expect_multiple(facts, "num_attention_heads", d.heads, "num_key_value_heads", d.kv_heads, faults);
    expect_multiple(
        facts, "linear_num_value_heads", d.value_heads, "linear_num_key_heads", d.key_heads, faults);
}

/// Gated DeltaNet. Megatron-Core stores the four input projections as one matrix, hence one export task.
void add_linear_attention(Builder& builder, const Dimensions& d) {
    const std::string key_heads = "GDN key heads";
    const std::string value_heads = "GDN value heads";
    const auto keys = d.key_heads * d.key_size;
    const auto values = d.value_heads * d.value_size;
    const Shape segments{keys, keys, values};
    const auto channels = 2 * keys + values;
    builder
        .segmented("linear_attn.in_proj_qkv.weight", {channels, d.hidden}, segments, d.key_heads, key_heads)
        .task = ExportTask::kFusedLeader;
    const auto member = [&](const char* name, std::uint64_t rows) {
        builder.column(name, {rows, d.hidden}, d.value_heads, value_heads).task = ExportTask::kFusedMember;
    };
    member("linear_attn.in_proj_z.weight", values);
    member("linear_attn.in_proj_b.weight", d.value_heads);
    member("linear_attn.in_proj_a.weight", d.value_heads);
    builder.segmented(
        "linear_attn.conv1d.weight", {channels, 1, d.convolution}, segments, d.key_heads, key_heads);
    builder.column("linear_attn.dt_bias", {d.value_heads}, d.value_heads, value_heads);
    // Megatron-Core keeps A_log in fp32; that the hub does so too is assumed.
    builder.column("linear_attn.A_log", {d.value_heads}, d.value_heads, value_heads).dtype = Dtype::kFp32;
    builder.replicated("linear_attn.norm.weight", {d.value_size});
    builder.row("linear_attn.out_proj.weight", {d.hidden, values}, d.value_heads, value_heads);
}

/// With an output gate, q_proj holds for each head its query rows and then as many gate rows.
void add_full_attention(Builder& builder, const Dimensions& d) {
    builder.attention_projections("self_attn.",
                                  {.query = d.heads,
                                   .key_value = d.kv_heads,
                                   .rows_per_query_head = (d.has_output_gate ? 2 : 1) * d.head_size,
                                   .rows_per_key_value_head = d.head_size},
                                  d.hidden);
    builder.replicated("self_attn.q_norm.weight", {d.head_size});
    builder.replicated("self_attn.k_norm.weight", {d.head_size});
    builder.row("self_attn.o_proj.weight", {d.hidden, d.heads * d.head_size}, d.heads, "attention heads");
}

void add_moe(Builder& builder, const Dimensions& d) {
    builder.replicated("post_attention_layernorm.weight", {d.hidden});
    builder.replicated("mlp.gate.weight", {d.experts, d.hidden});
    builder.experts("mlp.experts.",
                    {"gate_proj.weight", "up_proj.weight", "down_proj.weight"},
                    d.experts,
                    d.hidden,
                    d.expert_width);
    builder.mlp("mlp.shared_expert.", d.hidden, d.shared_width, true, false);
    builder.replicated("mlp.shared_expert_gate.weight", {1, d.hidden});
}

void add_layers(Builder& builder, const Dimensions& d) {
    const std::string prefix = "model.layers.{layer}.";
    builder.enter(prefix, layer_range(0, d.layers));
    builder.replicated("input_layernorm.weight", {d.hidden});
    if (auto linear = layers_of(d.kinds, kLinear); !linear.empty()) {
        builder.enter(prefix, std::move(linear));
        add_linear_attention(builder, d);
    }
    if (auto full = layers_of(d.kinds, kFull); !full.empty()) {
        builder.enter(prefix, std::move(full));
        add_full_attention(builder, d);
    }
    builder.enter(prefix, layer_range(0, d.layers));
    add_moe(builder, d);
}

/// MTP shares the embedding and the head with the model; its layers are full attention and MoE.
void add_mtp(Builder& builder, const Dimensions& d) {
    builder.enter_outside("mtp.", true, ModelPart::kMtp);
    builder.replicated("fc.weight", {d.hidden, 2 * d.hidden});
    builder.replicated("pre_fc_norm_embedding.weight", {d.hidden});
    builder.replicated("pre_fc_norm_hidden.weight", {d.hidden});
    builder.replicated("norm.weight", {d.hidden});
    builder.enter("mtp.layers.{layer}.", layer_range(0, d.mtp_layers), ModelPart::kMtp);
    builder.replicated("input_layernorm.weight", {d.hidden});
    add_full_attention(builder, d);
    add_moe(builder, d);
}

}  // namespace

Parameters qwen3_5_moe(const Facts& facts, Faults& faults) {
    const auto d = read(facts, faults);
    if (faults.empty()) {
        check(facts, d, faults);
    }
    if (!faults.empty()) {
        return {};
    }
    Builder builder;
    builder.enter_outside("model.", false);
    builder.vocabulary("embed_tokens.weight", {d.vocabulary, d.hidden});
    add_layers(builder, d);
    builder.enter_outside("", true);
    builder.replicated("model.norm.weight", {d.hidden});
    if (!d.is_tied) {
        builder.vocabulary("lm_head.weight", {d.vocabulary, d.hidden});
    }
    if (d.mtp_layers > 0) {
        add_mtp(builder, d);
    }
    return {static_cast<std::uint32_t>(d.layers), std::move(builder).finish()};
}

}  // namespace refit::families
