// SPDX-License-Identifier: Apache-2.0
// DeepSeek-V3, Kimi-K2, Moonlight, GLM-4.7-Flash and GLM-5: multi-head latent attention, dense first layers, routed and shared experts,
// MTP; in GLM-5 also the indexer of its sparse attention.
#include "builder.hpp"
#include "checks.hpp"
#include "family.hpp"

namespace refit::families {
namespace {

constexpr const char* kFullIndexer = "full";
constexpr const char* kSharedIndexer = "shared";

/// The indexer that chooses what sparse attention attends to; a layer without one shares that of a layer before it.
struct Indexer {
    std::uint64_t heads, head_size;
    Layers layers;
};

struct Dimensions {
    LatentAttention attention;
    std::uint64_t layers, vocabulary, dense_width, dense_layers, mtp_layers;
    Builder::Moe moe;
    bool has_indexer, has_mtp_copies;
    Indexer indexer;

    [[nodiscard]] std::uint64_t hidden() const noexcept { return attention.hidden; }
};

/// `q_lora_rank` is null where the queries have no latent (Moonlight).
Dimensions read(const Facts& facts, Faults& faults) {
    const auto hidden = facts.positive("hidden_size", faults);
    return {.attention = {.hidden = hidden,
                          .heads = facts.positive("num_attention_heads", faults),
                          .query_rank = facts.positive_or_null("q_lora_rank", faults),
                          .kv_rank = facts.positive("kv_lora_rank", faults),
                          .nope = facts.positive("qk_nope_head_dim", faults),
                          .rope = facts.positive("qk_rope_head_dim", faults),
                          .value = facts.positive("v_head_dim", faults)},
            .layers = layer_count(facts, "num_hidden_layers", faults),
            .vocabulary = facts.positive("vocab_size", faults),
            .dense_width = facts.positive("intermediate_size", faults),
            .dense_layers = facts.natural_or("first_k_dense_replace", 0, faults),
            .mtp_layers = layer_count_or_none(facts, "num_nextn_predict_layers", faults),
            .moe = {.hidden = hidden,
                    .experts = facts.positive("n_routed_experts", faults),
                    .expert_width = facts.positive("moe_intermediate_size", faults),
                    .shared_experts = facts.natural_or("n_shared_experts", 0, faults)},
            .has_indexer = false,
            .has_mtp_copies = true,
            .indexer = {}};
}

/// Every layer has an indexer of its own unless `indexer_types` says so.
void read_indexer(const Facts& facts, Dimensions& d, Faults& faults) {
    d.has_indexer = true;
    d.has_mtp_copies = false;
    d.indexer = {facts.positive("index_n_heads", faults), facts.positive("index_head_dim", faults), layer_range(0, d.layers)};
    if (facts.has("indexer_types")) {
        const auto kinds = facts.texts("indexer_types", faults);
        expect_kinds(facts, "indexer_types", kinds, {kFullIndexer, kSharedIndexer}, faults);
        expect_length(facts, "indexer_types", kinds.size(), d.layers, faults);
        d.indexer.layers = layers_of(kinds, kFullIndexer);
    }
}

void add_attention(Builder& builder, const Dimensions& d) {
    builder.replicated("input_layernorm.weight", {d.hidden()});
    builder.latent_attention("self_attn.", d.attention);
    builder.replicated("post_attention_layernorm.weight", {d.hidden()});
}

void add_indexer(Builder& builder, const Dimensions& d) {
    const std::string prefix = "self_attn.indexer.";
    builder.replicated(prefix + "wq_b.weight", {d.indexer.heads * d.indexer.head_size, d.attention.query_rank});
    builder.replicated(prefix + "wk.weight", {d.indexer.head_size, d.hidden()});
    builder.replicated(prefix + "k_norm.weight", {d.indexer.head_size});
    builder.replicated(prefix + "k_norm.bias", {d.indexer.head_size});
    builder.replicated(prefix + "weights_proj.weight", {d.indexer.heads, d.hidden()});
}

/// The MTP module follows the last layer: a whole MoE layer, in DeepSeek-V3 with copies of the embedding and the head.
void add_mtp(Builder& builder, const Dimensions& d) {
    builder.enter("model.layers.{layer}.", layer_range(d.layers, d.layers + d.mtp_layers), ModelPart::kMtp);
    add_attention(builder, d);
    if (d.has_indexer) {
        add_indexer(builder, d);
    }
    builder.biased_moe(d.moe);
    builder.mtp_joint(d.hidden(), d.vocabulary, d.has_mtp_copies);
}

void store_projections_as_fp8(std::vector<ParameterClass>& classes) {
    for (auto& entry : classes) {
        entry.native = entry.is_projection ? NativeStorage::kFp8Blocks : NativeStorage::kPlain;
    }
}

void add_layers(Builder& builder, const Dimensions& d) {
    const std::string prefix = "model.layers.{layer}.";
    builder.enter(prefix, layer_range(0, d.layers));
    add_attention(builder, d);
    if (d.has_indexer && !d.indexer.layers.empty()) {
        builder.enter(prefix, d.indexer.layers);
        add_indexer(builder, d);
    }
    if (d.dense_layers > 0) {
        builder.enter(prefix, layer_range(0, d.dense_layers));
        builder.mlp("mlp.", d.hidden(), d.dense_width, true, true);
    }
    if (d.dense_layers < d.layers) {
        builder.enter(prefix, layer_range(d.dense_layers, d.layers));
        builder.biased_moe(d.moe);
    }
}

Parameters parameters(const Facts& facts, const Dimensions& d, Faults& faults) {
    if (faults.empty()) {
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
        add_mtp(builder, d);
    }
    auto classes = std::move(builder).finish();
    mark_projections(classes);
    if (is_fp8_in_blocks(facts, "", faults)) {
        store_projections_as_fp8(classes);
    }
    return {static_cast<std::uint32_t>(d.layers), std::move(classes)};
}

}  // namespace

Parameters deepseek_v3(const Facts& facts, Faults& faults) { return parameters(facts, read(facts, faults), faults); }

Parameters glm_moe_dsa(const Facts& facts, Faults& faults) {
    auto d = read(facts, faults);
    read_indexer(facts, d, faults);
    if (d.attention.query_rank == 0) {
        refuse(facts, "'q_lora_rank' must be at least 1: the indexer reads the latent of the queries", faults);
    }
    return parameters(facts, d, faults);
}

}  // namespace refit::families
