// SPDX-License-Identifier: Apache-2.0
// Nemotron-H (Nemotron 3 Nano, Super, Ultra): Mamba-2, attention and MoE blocks in a listed order. The
// experts are not gated; in Super and Ultra they work in a narrower latent space.
#include <numeric>

#include "builder.hpp"
#include "checks.hpp"
#include "family.hpp"

namespace refit::families {
namespace {

constexpr const char* kMamba = "mamba";
constexpr const char* kAttention = "attention";
constexpr const char* kMoe = "moe";

struct Dimensions {
    std::uint64_t hidden, vocabulary, heads, kv_heads, head_size;
    std::uint64_t mamba_heads, mamba_head_size, mamba_groups, mamba_state, convolution;
    std::uint64_t experts, expert_width, shared_width, latent, mtp_steps;
    bool has_convolution_bias, is_tied;
    std::vector<std::string> blocks, mtp_blocks;

    [[nodiscard]] std::uint64_t mamba_width() const noexcept { return mamba_heads * mamba_head_size; }
    [[nodiscard]] std::uint64_t mamba_shared() const noexcept { return mamba_groups * mamba_state; }
    /// Tensor parallelism divides heads and groups alike.
    [[nodiscard]] std::uint64_t mamba_units() const noexcept { return std::gcd(mamba_heads, mamba_groups); }
};

/// Kinds of the blocks: from a list of words, or from a text with one character a block.
std::vector<std::string> read_blocks(const Facts& facts,
                                     const std::string& list_key,
                                     const std::string& pattern_key,
                                     Faults& faults) {
    std::vector<std::string> blocks;
    if (facts.has(list_key)) {
        blocks = facts.texts(list_key, faults);
        expect_kinds(facts, list_key, blocks, {kMamba, kAttention, kMoe}, faults);
    } else if (facts.has(pattern_key)) {
        for (const char c : facts.text_or(pattern_key, "", faults)) {
            blocks.emplace_back(c == 'M' ? kMamba : c == '*' ? kAttention : c == 'E' ? kMoe : std::string{c});
        }
        expect_kinds(facts, pattern_key, blocks, {kMamba, kAttention, kMoe}, faults);
    } else {
        faults.push_back(
            {ErrorCode::kInvalidInput,
             "missing-field",
             "'" + list_key + "' and '" + pattern_key + "' are missing; one of them must list the blocks",
             facts.origin()});
    }
    return blocks;
}

Dimensions read(const Facts& facts, Faults& faults) {
    for (const auto* bias : {"attention_bias", "mamba_proj_bias", "mlp_bias", "use_bias"}) {
        expect_flag(facts, bias, false, faults);
    }
    return {.hidden = facts.positive("hidden_size", faults),
            .vocabulary = facts.positive("vocab_size", faults),
            .heads = facts.positive("num_attention_heads", faults),
            .kv_heads = facts.positive("num_key_value_heads", faults),
            .head_size = facts.positive("head_dim", faults),
            .mamba_heads = facts.positive("mamba_num_heads", faults),
            .mamba_head_size = facts.positive("mamba_head_dim", faults),
            .mamba_groups = facts.positive("n_groups", faults),
            .mamba_state = facts.positive("ssm_state_size", faults),
            .convolution = facts.positive("conv_kernel", faults),
            .experts = facts.positive("n_routed_experts", faults),
            .expert_width = facts.positive("moe_intermediate_size", faults),
            .shared_width = facts.natural_or("moe_shared_expert_intermediate_size", 0, faults),
            .latent = facts.natural_or("moe_latent_size", 0, faults),
            .mtp_steps = layer_count_or_none(facts, "num_nextn_predict_layers", faults),
            .has_convolution_bias = facts.flag_or("use_conv_bias", true, faults),
            .is_tied = facts.flag_or("tie_word_embeddings", false, faults),
            .blocks = read_blocks(facts, "layers_block_type", "hybrid_override_pattern", faults),
            .mtp_blocks = {}};
}

void check(const Facts& facts, const Dimensions& d, Faults& faults) {
    const auto* key = facts.has("layers_block_type") ? "layers_block_type" : "hybrid_override_pattern";
    if (d.blocks.empty()) {
        refuse(facts, "'" + std::string{key} + "' lists no block", faults);
    }
    if (facts.has("num_hidden_layers")) {
        expect_length(facts, key, d.blocks.size(), layer_count(facts, "num_hidden_layers", faults), faults);
    }
    expect_multiple(facts, "num_attention_heads", d.heads, "num_key_value_heads", d.kv_heads, faults);
    expect_multiple(facts, "mamba_num_heads", d.mamba_heads, "n_groups", d.mamba_groups, faults);
}

void add_mamba(Builder& builder, const Dimensions& d) {
    const std::string groups = "Mamba groups";
    const std::string heads = "Mamba heads";
    const auto width = d.mamba_width();
    const auto shared = d.mamba_shared();
    const auto units = d.mamba_units();
    const auto channels = width + 2 * shared;
    builder.segmented("mixer.in_proj.weight",
                      {width + channels + d.mamba_heads, d.hidden},
                      {width, width, shared, shared, d.mamba_heads},
                      units,
                      groups);
    builder.segmented(
        "mixer.conv1d.weight", {channels, 1, d.convolution}, {width, shared, shared}, units, groups);
    if (d.has_convolution_bias) {
        builder.segmented("mixer.conv1d.bias", {channels}, {width, shared, shared}, units, groups);
    }
    // BF16 is assumed for these; the trainers hold A_log and D in fp32, a few kilobytes a layer.
    for (const auto* name : {"mixer.A_log", "mixer.D", "mixer.dt_bias"}) {
        builder.column(name, {d.mamba_heads}, d.mamba_heads, heads);
    }
    builder.column("mixer.norm.weight", {width}, d.mamba_heads, heads);
    builder.row("mixer.out_proj.weight", {d.hidden, width}, d.mamba_heads, heads);
}

void add_attention(Builder& builder, const Dimensions& d) {
    builder.attention_projections("mixer.",
                                  {.query = d.heads,
                                   .key_value = d.kv_heads,
                                   .rows_per_query_head = d.head_size,
                                   .rows_per_key_value_head = d.head_size},
                                  d.hidden);
    builder.row("mixer.o_proj.weight", {d.hidden, d.heads * d.head_size}, d.heads, "attention heads");
}

void add_moe(Builder& builder, const Dimensions& d) {
    builder.replicated("mixer.gate.weight", {d.experts, d.hidden});
    builder.replicated("mixer.gate.e_score_correction_bias", {d.experts}).dtype = Dtype::kFp32;
    if (d.latent > 0) {
        builder.replicated("mixer.fc1_latent_proj.weight", {d.latent, d.hidden});
        builder.replicated("mixer.fc2_latent_proj.weight", {d.hidden, d.latent});
    }
    builder.experts("mixer.experts.",
                    {"", "up_proj.weight", "down_proj.weight"},
                    d.experts,
                    d.latent > 0 ? d.latent : d.hidden,
                    d.expert_width);
    if (d.shared_width > 0) {
        builder.mlp("mixer.shared_experts.", d.hidden, d.shared_width, false, false);
    }
}

/// The blocks of each kind that `kinds` lists, each after its norm.
void add_blocks(Builder& builder,
                const std::string& prefix,
                const std::vector<std::string>& kinds,
                ModelPart part,
                const Dimensions& d) {
    struct Kind {
        const char* name;
        void (*add)(Builder&, const Dimensions&);
    };
    builder.enter(prefix, layer_range(0, kinds.size()), part);
    builder.replicated("norm.weight", {d.hidden});
    for (const auto& kind : {Kind{kMamba, add_mamba}, Kind{kAttention, add_attention}, Kind{kMoe, add_moe}}) {
        auto layers = layers_of(kinds, kind.name);
        if (!layers.empty()) {
            builder.enter(prefix, std::move(layers), part);
            kind.add(builder, d);
        }
    }
}

/// Each prediction step is a run of blocks: the first takes in the embedding, the last has a norm of its own.
void add_mtp(Builder& builder, const Dimensions& d) {
    const std::string prefix = "mtp.layers.{layer}.";
    std::vector<std::string> kinds;
    Layers first;
    Layers last;
    for (std::uint64_t step = 0; step < d.mtp_steps; ++step) {
        first.push_back(static_cast<std::uint32_t>(kinds.size()));
        kinds.insert(kinds.end(), d.mtp_blocks.begin(), d.mtp_blocks.end());
        last.push_back(static_cast<std::uint32_t>(kinds.size() - 1));
    }
    builder.enter(prefix, std::move(first), ModelPart::kMtp);
    builder.replicated("eh_proj.weight", {d.hidden, 2 * d.hidden});
    builder.replicated("enorm.weight", {d.hidden});
    builder.replicated("hnorm.weight", {d.hidden});
    add_blocks(builder, prefix, kinds, ModelPart::kMtp, d);
    builder.enter(prefix, std::move(last), ModelPart::kMtp);
    builder.replicated("final_layernorm.weight", {d.hidden});
}

}  // namespace

Parameters nemotron_h(const Facts& facts, Faults& faults) {
    auto d = read(facts, faults);
    if (faults.empty()) {
        check(facts, d, faults);
    }
    if (d.mtp_steps > 0) {
        d.mtp_blocks = read_blocks(facts, "mtp_layers_block_type", "mtp_hybrid_override_pattern", faults);
    }
    if (!faults.empty()) {
        return {};
    }
    Builder builder;
    builder.enter_outside("backbone.", false);
    builder.vocabulary("embeddings.weight", {d.vocabulary, d.hidden});
    add_blocks(builder, "backbone.layers.{layer}.", d.blocks, ModelPart::kText, d);
    builder.enter_outside("", true);
    builder.replicated("backbone.norm_f.weight", {d.hidden});
    if (!d.is_tied) {
        builder.vocabulary("lm_head.weight", {d.vocabulary, d.hidden});
    }
    if (!d.mtp_blocks.empty()) {
        add_mtp(builder, d);
    }
    return {static_cast<std::uint32_t>(d.blocks.size()), std::move(builder).finish()};
}

}  // namespace refit::families
