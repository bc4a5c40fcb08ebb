// SPDX-License-Identifier: Apache-2.0
#include "refit/shrink.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace refit {
namespace {

constexpr std::array kPlaces{"", "text_config.", "vision_config."};

/// Keys of config.json that say how wide something is.
constexpr std::array kWidths{"hidden_size",
                             "vocab_size",
                             "head_dim",
                             "intermediate_size",
                             "moe_intermediate_size",
                             "moe_shared_expert_intermediate_size",
                             "shared_expert_intermediate_size",
                             "q_lora_rank",
                             "kv_lora_rank",
                             "qk_nope_head_dim",
                             "qk_rope_head_dim",
                             "v_head_dim",
                             "index_head_dim",
                             "routed_expert_hidden_size",
                             "moe_latent_size",
                             "linear_attn_config.head_dim",
                             "linear_key_head_dim",
                             "linear_value_head_dim",
                             "mamba_head_dim",
                             "ssm_state_size",
                             "vt_hidden_size",
                             "qkv_hidden_size",
                             "vt_intermediate_size",
                             "mm_hidden_size",
                             "text_hidden_size",
                             "out_hidden_size",
                             "rows",
                             "columns"};

std::int64_t divided(std::uint64_t width, std::uint32_t divisor) {
    return static_cast<std::int64_t>(std::max<std::uint64_t>(1, width / divisor));
}

}  // namespace

Facts shrunk(const Facts& facts, std::uint32_t divisor) {
    auto small = facts;
    Faults ignored;
    for (const std::string place : kPlaces) {
        // Where heads share the hidden size evenly, their own size is left out.
        const bool has_heads = facts.has(place + "num_attention_heads") && facts.has(place + "hidden_size");
        if (has_heads && !facts.has(place + "head_dim") && !facts.has(place + "qk_nope_head_dim")) {
            const auto width = facts.positive(place + "hidden_size", ignored) /
                               facts.positive(place + "num_attention_heads", ignored);
            small.set(place + "head_dim", divided(width, divisor));
        }
        for (const auto* key : kWidths) {
            if (facts.has(place + key) && facts.natural_or(place + key, 0, ignored) > 0) {
                small.set(place + key, divided(facts.positive(place + key, ignored), divisor));
            }
        }
    }
    return small;
}

}  // namespace refit
