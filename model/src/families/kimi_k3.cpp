// SPDX-License-Identifier: Apache-2.0
// Kimi-K3: Kimi Delta Attention (KDA) and gated latent attention (MLA) without position, attention residuals,
// routed experts in a narrower latent space, and a vision tower. Its layer lists count from one.
#include <algorithm>

#include "builder.hpp"
#include "checks.hpp"
#include "family.hpp"

namespace refit::families {
namespace {

constexpr const char* kKdaKey = "text_config.linear_attn_config.kda_layers";
constexpr const char* kMlaKey = "text_config.linear_attn_config.full_attn_layers";
constexpr const char* kPrefix = "language_model.model.layers.{layer}.";

struct Text {
    LatentAttention attention;
    std::uint64_t layers, vocabulary, dense_width, dense_layers;
    std::uint64_t kda_heads, kda_head_size, convolution;
    std::uint64_t experts, expert_width, latent, shared_experts;
    bool has_latent_norm, has_output_gate;
    std::vector<std::int64_t> kda_list, mla_list;

    [[nodiscard]] std::uint64_t hidden() const noexcept { return attention.hidden; }
};

struct Vision {
    std::uint64_t hidden, attention_width, width, layers, patch, height, columns, merged_hidden, text_hidden;
    std::vector<std::int64_t> merge;
};

LatentAttention read_attention(const Facts& facts, Faults& faults) {
    return {.hidden = facts.positive("text_config.hidden_size", faults),
            .heads = facts.positive("text_config.num_attention_heads", faults),
            .query_rank = facts.positive("text_config.q_lora_rank", faults),
            .kv_rank = facts.positive("text_config.kv_lora_rank", faults),
            .nope = facts.positive("text_config.qk_nope_head_dim", faults),
            .rope = facts.positive("text_config.qk_rope_head_dim", faults),
            .value = facts.positive("text_config.v_head_dim", faults)};
}

Text read_text(const Facts& facts, Faults& faults) {
    expect_flag(facts, "text_config.linear_attn_config.use_full_rank_gate", true, faults);
    return {.attention = read_attention(facts, faults),
            .layers = layer_count(facts, "text_config.num_hidden_layers", faults),
            .vocabulary = facts.positive("text_config.vocab_size", faults),
            .dense_width = facts.positive("text_config.intermediate_size", faults),
            .dense_layers = facts.natural_or("text_config.first_k_dense_replace", 0, faults),
            .kda_heads = facts.positive("text_config.linear_attn_config.num_heads", faults),
            .kda_head_size = facts.positive("text_config.linear_attn_config.head_dim", faults),
            .convolution = facts.positive("text_config.linear_attn_config.short_conv_kernel_size", faults),
            .experts = facts.positive("text_config.num_experts", faults),
            .expert_width = facts.positive("text_config.moe_intermediate_size", faults),
            .latent = facts.positive("text_config.routed_expert_hidden_size", faults),
            .shared_experts = facts.natural_or("text_config.num_shared_experts", 0, faults),
            .has_latent_norm = facts.flag_or("text_config.latent_moe_use_norm", true, faults),
            .has_output_gate = facts.flag_or("text_config.mla_use_output_gate", true, faults),
            .kda_list = facts.numbers(kKdaKey, faults),
            .mla_list = facts.numbers(kMlaKey, faults)};
}

Vision read_vision(const Facts& facts, Faults& faults) {
    for (const auto* bias : {"attn_bias", "linear_bias", "patch_embed_proj_bias"}) {
        expect_flag(facts, "vision_config." + std::string{bias}, false, faults);
    }
    return {.hidden = facts.positive("vision_config.vt_hidden_size", faults),
            .attention_width = facts.positive("vision_config.qkv_hidden_size", faults),
            .width = facts.positive("vision_config.vt_intermediate_size", faults),
            .layers = layer_count(facts, "vision_config.vt_num_hidden_layers", faults),
            .patch = facts.positive("vision_config.patch_size", faults),
            .height = facts.positive("vision_config.init_pos_emb_height", faults),
            .columns = facts.positive("vision_config.init_pos_emb_width", faults),
            .merged_hidden = facts.positive("vision_config.mm_hidden_size", faults),
            .text_hidden = facts.positive("vision_config.text_hidden_size", faults),
            .merge = facts.numbers("vision_config.merge_kernel_size", faults)};
}

/// Every layer must stand in exactly one of the two lists, counted from one.
void check_layer_lists(const Facts& facts, const Text& d, Faults& faults) {
    std::vector<int> seen(d.layers, 0);
    const auto count = [&](const char* key, const std::vector<std::int64_t>& list) {
        for (const auto layer : list) {
            if (layer < 1 || layer > static_cast<std::int64_t>(d.layers)) {
                refuse(facts,
                       "'" + std::string{key} + "' names layer " + std::to_string(layer) +
                           ", but the layers are 1 to " + std::to_string(d.layers),
                       faults);
            } else {
                ++seen[static_cast<std::size_t>(layer - 1)];
            }
        }
    };
    count(kKdaKey, d.kda_list);
    count(kMlaKey, d.mla_list);
    const auto wrong = std::ranges::find_if(seen, [](int times) { return times != 1; });
    if (wrong != seen.end() && faults.empty()) {
        refuse(facts,
               "layer " + std::to_string(1 + (wrong - seen.begin())) + " stands " + std::to_string(*wrong) +
                   " times in '" + kKdaKey + "' and '" + kMlaKey + "' together, but must stand once",
               faults);
    }
}

void check(const Facts& facts, const Text& text, const Vision& vision, Faults& faults) {
    check_layer_lists(facts, text, faults);
    expect_at_most(facts,
                   "text_config.first_k_dense_replace",
                   text.dense_layers,
                   "text_config.num_hidden_layers",
                   text.layers,
                   faults);
    const auto& merge = vision.merge;
    if (merge.size() != 2 || std::ranges::any_of(merge, [](std::int64_t n) { return n < 1 || n > 64; })) {
        refuse(facts, "'vision_config.merge_kernel_size' must be two whole numbers in 1 to 64", faults);
    }
}

Layers from_zero(const std::vector<std::int64_t>& list) {
    Layers layers;
    for (const auto layer : list) {
        layers.push_back(static_cast<std::uint32_t>(layer - 1));
    }
    std::ranges::sort(layers);
    return layers;
}

/// Unlike the q, k and v of other families these are tensors and export tasks of their own, cut by head.
void add_kda(Builder& builder, const Text& d) {
    const std::string heads = "KDA heads";
    const auto rows = d.kda_heads * d.kda_head_size;
    for (const auto* name : {"q_proj", "k_proj", "v_proj"}) {
        builder.column("self_attn." + std::string{name} + ".weight", {rows, d.hidden()}, d.kda_heads, heads);
    }
    for (const auto* name : {"q_conv1d", "k_conv1d", "v_conv1d"}) {
        const auto full_name = "self_attn." + std::string{name} + ".weight";
        builder.column(full_name, {rows, 1, d.convolution}, d.kda_heads, heads).dtype = Dtype::kFp32;
    }
    builder.replicated("self_attn.f_a_proj.weight", {d.kda_head_size, d.hidden()});
    builder.column("self_attn.f_b_proj.weight", {rows, d.kda_head_size}, d.kda_heads, heads);
    builder.column("self_attn.b_proj.weight", {d.kda_heads, d.hidden()}, d.kda_heads, heads);
    builder.column("self_attn.g_proj.weight", {rows, d.hidden()}, d.kda_heads, heads);
    // Stored with zeros up to a multiple of 128 rows. Only the heads are cut; the padding is delivered to
    // nobody and is no parameter.
    const auto stored = (d.kda_heads + 127) / 128 * 128;
    builder.segmented("self_attn.A_log", {stored}, {d.kda_heads}, d.kda_heads, heads).dtype = Dtype::kFp32;
    builder.column("self_attn.dt_bias", {rows}, d.kda_heads, heads).dtype = Dtype::kFp32;
    builder.replicated("self_attn.o_norm.weight", {d.kda_head_size});
    builder.row("self_attn.o_proj.weight", {d.hidden(), rows}, d.kda_heads, heads);
}

void add_mla(Builder& builder, const Text& d) {
    const auto& attention = d.attention;
    builder.latent_attention("self_attn.", attention);
    if (d.has_output_gate) {
        builder.column("self_attn.g_proj.weight",
                       {attention.heads * attention.value, attention.hidden},
                       attention.heads,
                       "attention heads");
    }
}

void add_moe(Builder& builder, const Text& d) {
    const std::string prefix = "block_sparse_moe.";
    builder.replicated(prefix + "gate.weight", {d.experts, d.hidden()});
    builder.replicated(prefix + "gate.e_score_correction_bias", {d.experts}).dtype = Dtype::kFp32;
    builder.replicated(prefix + "routed_expert_down_proj.weight", {d.latent, d.hidden()});
    if (d.has_latent_norm) {
        builder.replicated(prefix + "routed_expert_norm.weight", {d.latent});
    }
    builder.replicated(prefix + "routed_expert_up_proj.weight", {d.hidden(), d.latent});
    builder.experts(
        prefix + "experts.", {"w1.weight", "w3.weight", "w2.weight"}, d.experts, d.latent, d.expert_width);
    if (d.shared_experts > 0) {
        builder.mlp(prefix + "shared_experts.", d.hidden(), d.shared_experts * d.expert_width, true, false);
    }
}

void add_layers(Builder& builder, const Text& d) {
    builder.enter(kPrefix, layer_range(0, d.layers));
    builder.replicated("self_attention_res_norm.weight", {d.hidden()});
    builder.replicated("self_attention_res_proj.weight", {1, d.hidden()});
    builder.replicated("input_layernorm.weight", {d.hidden()});
    if (!d.kda_list.empty()) {
        builder.enter(kPrefix, from_zero(d.kda_list));
        add_kda(builder, d);
    }
    if (!d.mla_list.empty()) {
        builder.enter(kPrefix, from_zero(d.mla_list));
        add_mla(builder, d);
    }
    builder.enter(kPrefix, layer_range(0, d.layers));
    builder.replicated("mlp_res_norm.weight", {d.hidden()});
    builder.replicated("mlp_res_proj.weight", {1, d.hidden()});
    builder.replicated("post_attention_layernorm.weight", {d.hidden()});
    if (d.dense_layers > 0) {
        builder.enter(kPrefix, layer_range(0, d.dense_layers));
        builder.mlp("mlp.", d.hidden(), d.dense_width, true, true);
    }
    if (d.dense_layers < d.layers) {
        builder.enter(kPrefix, layer_range(d.dense_layers, d.layers));
        add_moe(builder, d);
    }
}

/// The tower stands before the first layer and on no other stage, so its blocks are not layers of the model.
void add_vision(Builder& builder, const Vision& d) {
    builder.enter_outside("vision_tower.patch_embed.", false, ModelPart::kVision);
    builder.replicated("proj.weight", {d.hidden, 3, d.patch, d.patch});
    builder.replicated("pos_emb.weight", {d.height, d.columns, d.hidden});
    for (std::uint64_t block = 0; block < d.layers; ++block) {
        builder.enter_outside(
            "vision_tower.encoder.blocks." + std::to_string(block) + ".", false, ModelPart::kVision);
        builder.replicated("norm0.weight", {d.hidden});
        builder.replicated("wqkv.weight", {3 * d.attention_width, d.hidden});
        builder.replicated("wo.weight", {d.hidden, d.attention_width});
        builder.replicated("norm1.weight", {d.hidden});
        builder.replicated("mlp.fc0.weight", {d.width, d.hidden});
        builder.replicated("mlp.fc1.weight", {d.hidden, d.width});
    }
    builder.enter_outside("vision_tower.encoder.", false, ModelPart::kVision);
    builder.replicated("final_layernorm.weight", {d.hidden});
    const auto merged = static_cast<std::uint64_t>(d.merge.at(0) * d.merge.at(1)) * d.merged_hidden;
    builder.enter_outside("mm_projector.", false, ModelPart::kVision);
    builder.replicated("proj.0.weight", {merged, merged});
    builder.replicated("proj.2.weight", {d.text_hidden, merged});
    builder.replicated("post_norm.weight", {d.text_hidden});
}

}  // namespace

Parameters kimi_k3(const Facts& facts, Faults& faults) {
    const auto text = read_text(facts, faults);
    const auto vision = read_vision(facts, faults);
    if (faults.empty()) {
        check(facts, text, vision, faults);
    }
    if (!faults.empty()) {
        return {};
    }
    Builder builder;
    add_vision(builder, vision);
    builder.enter_outside("language_model.model.", false);
    builder.vocabulary("embed_tokens.weight", {text.vocabulary, text.hidden()});
    add_layers(builder, text);
    builder.enter_outside("language_model.", true);
    builder.replicated("model.output_attn_res_norm.weight", {text.hidden()});
    builder.replicated("model.output_attn_res_proj.weight", {1, text.hidden()});
    builder.replicated("model.norm.weight", {text.hidden()});
    builder.vocabulary("lm_head.weight", {text.vocabulary, text.hidden()});
    auto classes = std::move(builder).finish();
    // The public checkpoint packs the routed experts into four bits and leaves the rest.
    const bool is_packed = facts.text_or("text_config.quantization_config.format", "", faults) == "mxfp4-pack-quantized";
    for (auto& entry : classes) {
        entry.native = is_packed && entry.is_expert() ? NativeStorage::kMxfp4Groups : NativeStorage::kPlain;
    }
    return {static_cast<std::uint32_t>(text.layers), std::move(classes)};
}

}  // namespace refit::families
