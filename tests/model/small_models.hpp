// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "models.hpp"

namespace refit::testing_models {

/// Every model of data/models.
inline constexpr std::array kShippedIds{"deepseek-v3",
                                        "glm-4.5",
                                        "glm-4.5-air",
                                        "glm-4.7-flash",
                                        "glm-5",
                                        "glm-5-4-layers",
                                        "glm-5.2",
                                        "glm-z1-9b",
                                        "kimi-k2",
                                        "kimi-k3",
                                        "llama-3.1-405b",
                                        "llama-3.1-70b",
                                        "llama-3.1-8b",
                                        "moonlight-16b-a3b",
                                        "nemotron-3-nano-30b-a3b",
                                        "nemotron-3-super-120b-a12b",
                                        "nemotron-3-ultra-550b-a55b",
                                        "qwen2.5-0.5b",
                                        "qwen2.5-1.5b",
                                        "qwen2.5-14b",
                                        "qwen2.5-32b",
                                        "qwen2.5-3b",
                                        "qwen2.5-72b",
                                        "qwen2.5-7b",
                                        "qwen3-0.6b",
                                        "qwen3-1.7b",
                                        "qwen3-14b",
                                        "qwen3-235b-a22b",
                                        "qwen3-30b-a3b",
                                        "qwen3-32b",
                                        "qwen3-4b",
                                        "qwen3-8b",
                                        "qwen3.5-27b",
                                        "qwen3.5-397b-a17b",
                                        "qwen3.8-2.4t-a95b",
                                        "teaching-matrix"};

/// A shipped model shrunk until its elements can be walked one by one: fewer and narrower of everything, the
/// same kinds of layers and tensors.
struct SmallModel {
    Facts facts;
    Inventory model;

    /// Of the text part, wherever the config has it.
    [[nodiscard]] std::uint64_t fact(const std::string& key) const {
        Faults ignored;
        return facts.positive(facts.has(key) ? key : "text_config." + key, ignored);
    }
    [[nodiscard]] std::string model_type() const {
        Faults ignored;
        return facts.text_or("model_type", "", ignored);
    }
};

using Sizes = std::initializer_list<std::pair<const char*, std::int64_t>>;

inline void set_all(Facts& facts, Sizes sizes, const std::string& prefix = "") {
    for (const auto& [key, value] : sizes) {
        facts.set(prefix + key, value);
    }
}

/// 12 latent heads; layer 0 dense, three with 12 experts; K2 with 8 heads and 10 experts.
inline void shrink_deepseek(Facts& facts, bool is_k2) {
    if (facts.has("q_lora_rank")) {
        facts.set("q_lora_rank", std::int64_t{3});
    }
    set_all(facts,
            {{"hidden_size", 4},
             {"num_hidden_layers", 4},
             {"vocab_size", 300},
             {"num_attention_heads", is_k2 ? 8 : 12},
             {"num_key_value_heads", is_k2 ? 8 : 12},
             {"kv_lora_rank", 2},
             {"qk_nope_head_dim", 2},
             {"qk_rope_head_dim", 1},
             {"v_head_dim", 1},
             {"intermediate_size", is_k2 ? 16 : 24},
             {"first_k_dense_replace", 1},
             {"n_routed_experts", is_k2 ? 10 : 12},
             {"moe_intermediate_size", is_k2 ? 8 : 12}});
}

/// As DeepSeek, with an indexer of 2 heads in each layer, or in two of them where layers share theirs.
inline void shrink_glm_5(Facts& facts) {
    shrink_deepseek(facts, false);
    set_all(facts, {{"index_n_heads", 2}, {"index_head_dim", 3}});
    if (facts.has("indexer_types")) {
        facts.set("indexer_types", std::vector<std::string>{"full", "shared", "full", "shared"});
    }
}

/// 12 heads of 2 rows over 4 KV heads; layer 0 dense, two with 10 experts.
inline void shrink_glm_4_5(Facts& facts) {
    set_all(facts,
            {{"hidden_size", 4},
             {"num_hidden_layers", 3},
             {"vocab_size", 200},
             {"num_attention_heads", 12},
             {"num_key_value_heads", 4},
             {"head_dim", 2},
             {"intermediate_size", 12},
             {"first_k_dense_replace", 1},
             {"n_routed_experts", 10},
             {"moe_intermediate_size", 12}});
}

/// Three KDA layers, then an MLA one; 14 experts in a latent space; a vision tower of one block.
inline void shrink_kimi_k3(Facts& facts) {
    set_all(facts,
            {{"hidden_size", 4},
             {"num_hidden_layers", 4},
             {"vocab_size", 200},
             {"num_attention_heads", 12},
             {"num_key_value_heads", 12},
             {"q_lora_rank", 3},
             {"kv_lora_rank", 2},
             {"qk_nope_head_dim", 1},
             {"qk_rope_head_dim", 1},
             {"v_head_dim", 1},
             {"linear_attn_config.num_heads", 12},
             {"linear_attn_config.head_dim", 2},
             {"intermediate_size", 12},
             {"num_experts", 14},
             {"moe_intermediate_size", 12},
             {"routed_expert_hidden_size", 3}},
            "text_config.");
    facts.set("text_config.linear_attn_config.kda_layers", std::vector<std::int64_t>{1, 2, 3});
    facts.set("text_config.linear_attn_config.full_attn_layers", std::vector<std::int64_t>{4});
    set_all(facts,
            {{"vt_hidden_size", 2},
             {"qkv_hidden_size", 2},
             {"vt_intermediate_size", 2},
             {"vt_num_hidden_layers", 1},
             {"patch_size", 2},
             {"init_pos_emb_height", 2},
             {"init_pos_emb_width", 2},
             {"mm_hidden_size", 1},
             {"text_hidden_size", 4}},
            "vision_config.");
}

/// Mamba of 8 heads in 4 groups, attention of 8 heads with 2 KV heads, 6 experts; Super and Ultra with a
/// latent space.
inline void shrink_nemotron(Facts& facts, const std::string& id) {
    set_all(facts,
            {{"hidden_size", 6},
             {"vocab_size", 200},
             {"num_attention_heads", 8},
             {"num_key_value_heads", 2},
             {"head_dim", 2},
             {"mamba_num_heads", 8},
             {"mamba_head_dim", 2},
             {"n_groups", 4},
             {"ssm_state_size", 2},
             {"n_routed_experts", 6},
             {"moe_intermediate_size", 8},
             {"moe_shared_expert_intermediate_size", 16}});
    if (id.find("nano") == std::string::npos) {
        facts.set("moe_latent_size", std::int64_t{3});
    }
    if (id.find("ultra") != std::string::npos) {
        facts.set("layers_block_type", std::vector<std::string>{"mamba", "moe", "attention", "moe", "mamba"});
    } else {
        facts.set("num_hidden_layers", std::int64_t{5});
        facts.set("hybrid_override_pattern", std::string{"ME*EM"});
    }
}

/// 235B: 3 KV heads under 12 heads and 10 experts; 30B: 2 under 8 and 9.
inline void shrink_qwen3(Facts& facts, bool is_large) {
    set_all(facts,
            {{"hidden_size", 4},
             {"num_hidden_layers", 6},
             {"vocab_size", is_large ? 190 : 500},
             {"num_attention_heads", is_large ? 12 : 8},
             {"num_key_value_heads", is_large ? 3 : 2},
             {"head_dim", 4},
             {"num_experts", is_large ? 10 : 9},
             {"moe_intermediate_size", is_large ? 12 : 8}});
}

/// Three layers of Gated DeltaNet, 8 key heads under 16 value heads, then one of full attention with an
/// output gate: 8 heads of 6 + 6 rows with 2 KV heads, so that a cut in 4 or 8 goes through a gate.
inline void shrink_gated_delta_net(Facts& facts, const std::string& place) {
    set_all(facts,
            {{"hidden_size", 4},
             {"num_hidden_layers", 4},
             {"vocab_size", 200},
             {"num_attention_heads", 8},
             {"num_key_value_heads", 2},
             {"head_dim", 6},
             {"linear_num_key_heads", 8},
             {"linear_key_head_dim", 1},
             {"linear_num_value_heads", 16},
             {"linear_value_head_dim", 2}},
            place);
}

inline void shrink_qwen3_experts(Facts& facts, const std::string& place) {
    set_all(facts, {{"num_experts", 9}, {"moe_intermediate_size", 8}, {"shared_expert_intermediate_size", 8}}, place);
}

inline void shrink_qwen3_8(Facts& facts) {
    shrink_gated_delta_net(facts, "");
    shrink_qwen3_experts(facts, "");
}

/// With a vision tower of one block.
inline void shrink_qwen3_5(Facts& facts) {
    shrink_gated_delta_net(facts, "text_config.");
    if (facts.has("text_config.num_experts")) {
        shrink_qwen3_experts(facts, "text_config.");
    } else {
        facts.set("text_config.intermediate_size", std::int64_t{16});
    }
    set_all(facts,
            {{"depth", 1},
             {"hidden_size", 2},
             {"intermediate_size", 3},
             {"patch_size", 2},
             {"num_position_embeddings", 3},
             {"out_hidden_size", 4}},
            "vision_config.");
}

/// Three layers of 8 heads of 2 rows over 2 KV heads.
inline void shrink_dense(Facts& facts) {
    set_all(facts,
            {{"hidden_size", 16},
             {"num_hidden_layers", 3},
             {"vocab_size", 200},
             {"num_attention_heads", 8},
             {"num_key_value_heads", 2},
             {"head_dim", 2},
             {"intermediate_size", 16}});
}

inline SmallModel shrunken(const std::string& id) {
    auto facts = shipped_facts(id);
    if (id == "deepseek-v3" || id == "kimi-k2" || id == "glm-4.7-flash" || id.starts_with("moonlight")) {
        shrink_deepseek(facts, id == "kimi-k2");
    } else if (id.starts_with("glm-5")) {
        shrink_glm_5(facts);
    } else if (id.starts_with("glm-4.5")) {
        shrink_glm_4_5(facts);
    } else if (id == "kimi-k3") {
        shrink_kimi_k3(facts);
    } else if (id.starts_with("nemotron")) {
        shrink_nemotron(facts, id);
    } else if (facts.has("intermediate_size") && !facts.has("num_experts")) {
        shrink_dense(facts);
    } else if (id.starts_with("qwen3-")) {
        shrink_qwen3(facts, id == "qwen3-235b-a22b");
    } else if (id.starts_with("qwen3.5")) {
        shrink_qwen3_5(facts);
    } else if (id.starts_with("qwen3.8")) {
        shrink_qwen3_8(facts);
    } else {
        set_all(facts, {{"rows", 24}, {"columns", 5}});
    }
    auto model = Inventory::make(id, facts).value();
    return {std::move(facts), std::move(model)};
}

}  // namespace refit::testing_models
