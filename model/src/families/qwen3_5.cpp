// SPDX-License-Identifier: Apache-2.0
// Qwen3.5: Gated DeltaNet layers, every fourth layer full attention with an output gate, MTP. Qwen3.5-27B has a dense MLP
// in each layer and a vision tower; Qwen3.5-397B-A17B a tower, routed experts and a gated shared one; Qwen3.8-2.4T-A95B,
// text only, the same experts. They are counted as the trainers export them, one tensor for each expert and projection;
// the BF16 checkpoints on the hub hold them grouped.
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
    std::uint64_t dense_width;  ///< 0: experts instead.
    std::uint64_t experts, expert_width, shared_width, mtp_layers;
    bool has_output_gate, is_tied;
    std::vector<std::string> kinds;
};

struct Vision {
    std::uint64_t hidden, width, layers, channels, patch, frames, positions, merge, text_hidden;
};

/// Where the facts of the text stand, and how its tensors' names begin.
struct Place {
    std::string facts;
    std::string names;
    bool has_vision;
};

Place text_only() { return {"", "model.", false}; }

Place beside_vision() { return {"text_config.", "model.language_model.", true}; }

/// Kinds of the layers: listed, or every `full_attention_interval`-th one full attention.
std::vector<std::string> read_kinds(const Facts& facts, const std::string& place, std::uint64_t layers, Faults& faults) {
    if (const auto key = place + "layer_types"; facts.has(key)) {
        auto kinds = facts.texts(key, faults);
        expect_kinds(facts, key, kinds, {kLinear, kFull}, faults);
        return kinds;
    }
    const auto interval = facts.positive(place + "full_attention_interval", faults);
    std::vector<std::string> kinds;
    for (std::uint64_t layer = 0; layer < layers; ++layer) {
        kinds.emplace_back((layer + 1) % interval == 0 ? kFull : kLinear);
    }
    return kinds;
}

Dimensions read_layers(const Facts& facts, const std::string& place, Faults& faults) {
    expect_flag(facts, place + "attention_bias", false, faults);
    Dimensions d{.hidden = facts.positive(place + "hidden_size", faults),
                 .layers = layer_count(facts, place + "num_hidden_layers", faults),
                 .vocabulary = facts.positive(place + "vocab_size", faults),
                 .heads = facts.positive(place + "num_attention_heads", faults),
                 .kv_heads = facts.positive(place + "num_key_value_heads", faults),
                 .head_size = facts.positive(place + "head_dim", faults),
                 .key_heads = facts.positive(place + "linear_num_key_heads", faults),
                 .key_size = facts.positive(place + "linear_key_head_dim", faults),
                 .value_heads = facts.positive(place + "linear_num_value_heads", faults),
                 .value_size = facts.positive(place + "linear_value_head_dim", faults),
                 .convolution = facts.positive(place + "linear_conv_kernel_dim", faults),
                 .dense_width = 0,
                 .experts = 0,
                 .expert_width = 0,
                 .shared_width = 0,
                 .mtp_layers = layer_count_or_none(facts, place + "mtp_num_hidden_layers", faults),
                 .has_output_gate = facts.flag_or(place + "attn_output_gate", true, faults),
                 .is_tied = facts.flag_or("tie_word_embeddings", false, faults),
                 .kinds = {}};
    d.kinds = read_kinds(facts, place, d.layers, faults);
    return d;
}

void read_experts(const Facts& facts, const std::string& place, Dimensions& d, Faults& faults) {
    d.experts = facts.positive(place + "num_experts", faults);
    d.expert_width = facts.positive(place + "moe_intermediate_size", faults);
    d.shared_width = facts.positive(place + "shared_expert_intermediate_size", faults);
}

Vision read_vision(const Facts& facts, Faults& faults) {
    return {.hidden = facts.positive("vision_config.hidden_size", faults),
            .width = facts.positive("vision_config.intermediate_size", faults),
            .layers = layer_count(facts, "vision_config.depth", faults),
            .channels = facts.positive("vision_config.in_channels", faults),
            .patch = facts.positive("vision_config.patch_size", faults),
            .frames = facts.positive("vision_config.temporal_patch_size", faults),
            .positions = facts.positive("vision_config.num_position_embeddings", faults),
            .merge = facts.positive("vision_config.spatial_merge_size", faults),
            .text_hidden = facts.positive("vision_config.out_hidden_size", faults)};
}

void check(const Facts& facts, const std::string& place, const Dimensions& d, Faults& faults) {
    expect_length(facts, place + "layer_types", d.kinds.size(), d.layers, faults);
    expect_multiple(
        facts, place + "num_attention_heads", d.heads, place + "num_key_value_heads", d.kv_heads, faults);
    expect_multiple(
        facts, place + "linear_num_value_heads", d.value_heads, place + "linear_num_key_heads", d.key_heads, faults);
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
    // The checkpoints of the dense models are BF16 throughout. Megatron-Core keeps A_log in FP32, and that those of the
    // MoE models do so too is assumed.
    builder.column("linear_attn.A_log", {d.value_heads}, d.value_heads, value_heads).dtype =
        d.experts == 0 ? Dtype::kBf16 : Dtype::kFp32;
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

void add_mlp(Builder& builder, const Dimensions& d) {
    builder.replicated("post_attention_layernorm.weight", {d.hidden});
    if (d.experts == 0) {
        builder.mlp("mlp.", d.hidden, d.dense_width, true, true);
        return;
    }
    builder.replicated("mlp.gate.weight", {d.experts, d.hidden});
    builder.experts("mlp.experts.",
                    {"gate_proj.weight", "up_proj.weight", "down_proj.weight"},
                    d.experts,
                    d.hidden,
                    d.expert_width);
    builder.mlp("mlp.shared_expert.", d.hidden, d.shared_width, true, false);
    builder.replicated("mlp.shared_expert_gate.weight", {1, d.hidden});
}

void add_layers(Builder& builder, const std::string& names, const Dimensions& d) {
    const auto prefix = names + "layers.{layer}.";
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
    add_mlp(builder, d);
}

/// MTP shares the embedding and the head with the model; its layers are full attention and the model's MLP.
void add_mtp(Builder& builder, const Dimensions& d) {
    builder.enter_outside("mtp.", true, ModelPart::kMtp);
    builder.replicated("fc.weight", {d.hidden, 2 * d.hidden});
    builder.replicated("pre_fc_norm_embedding.weight", {d.hidden});
    builder.replicated("pre_fc_norm_hidden.weight", {d.hidden});
    builder.replicated("norm.weight", {d.hidden});
    builder.enter("mtp.layers.{layer}.", layer_range(0, d.mtp_layers), ModelPart::kMtp);
    builder.replicated("input_layernorm.weight", {d.hidden});
    add_full_attention(builder, d);
    add_mlp(builder, d);
}

/// The tower stands before the first layer and on no other stage, so its blocks are not layers of the model.
void add_vision(Builder& builder, const Vision& d) {
    const auto outside = [&](const std::string& prefix) {
        builder.enter_outside("model.visual." + prefix, false, ModelPart::kVision);
    };
    const auto biased = [&](const std::string& name, Shape shape) {
        builder.replicated(name + ".bias", {shape.front()});
        builder.replicated(name + ".weight", std::move(shape));
    };
    outside("");
    biased("patch_embed.proj", {d.hidden, d.channels, d.frames, d.patch, d.patch});
    builder.replicated("pos_embed.weight", {d.positions, d.hidden});
    for (std::uint64_t block = 0; block < d.layers; ++block) {
        outside("blocks." + std::to_string(block) + ".");
        biased("norm1", {d.hidden});
        biased("norm2", {d.hidden});
        biased("attn.qkv", {3 * d.hidden, d.hidden});
        biased("attn.proj", {d.hidden, d.hidden});
        biased("mlp.linear_fc1", {d.width, d.hidden});
        biased("mlp.linear_fc2", {d.hidden, d.width});
    }
    const auto merged = d.merge * d.merge * d.hidden;
    outside("merger.");
    biased("norm", {d.hidden});
    biased("linear_fc1", {merged, merged});
    biased("linear_fc2", {d.text_hidden, merged});
}

void add_text(Builder& builder, const std::string& names, const Dimensions& d) {
    builder.enter_outside(names, false);
    builder.vocabulary("embed_tokens.weight", {d.vocabulary, d.hidden});
    add_layers(builder, names, d);
    builder.enter_outside("", true);
    builder.replicated(names + "norm.weight", {d.hidden});
    if (!d.is_tied) {
        builder.vocabulary("lm_head.weight", {d.vocabulary, d.hidden});
    }
    if (d.mtp_layers > 0) {
        add_mtp(builder, d);
    }
}

Parameters parameters(const Facts& facts, const Place& place, const Dimensions& d, Faults& faults) {
    const auto vision = place.has_vision ? read_vision(facts, faults) : Vision{};
    if (faults.empty()) {
        check(facts, place.facts, d, faults);
    }
    if (!faults.empty()) {
        return {};
    }
    Builder builder;
    if (place.has_vision) {
        add_vision(builder, vision);
    }
    add_text(builder, place.names, d);
    return {static_cast<std::uint32_t>(d.layers), std::move(builder).finish()};
}

}  // namespace

Parameters qwen3_5(const Facts& facts, Faults& faults) {
    const auto place = beside_vision();
    auto d = read_layers(facts, place.facts, faults);
    d.dense_width = facts.positive(place.facts + "intermediate_size", faults);
    return parameters(facts, place, d, faults);
}

Parameters qwen3_5_moe(const Facts& facts, Faults& faults) {
    const auto place = beside_vision();
    auto d = read_layers(facts, place.facts, faults);
    read_experts(facts, place.facts, d, faults);
    return parameters(facts, place, d, faults);
}

Parameters qwen3_5_moe_text(const Facts& facts, Faults& faults) {
    const auto place = text_only();
    auto d = read_layers(facts, place.facts, faults);
    read_experts(facts, place.facts, d, faults);
    return parameters(facts, place, d, faults);
}

}  // namespace refit::families
