// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "family.hpp"

namespace refit::families {

std::span<const Family> registry() noexcept {
    static constexpr std::array kFamilies{
        Family{"deepseek_v3", deepseek_v3},
        Family{"glm4", glm4},
        Family{"glm4_moe", glm4_moe},
        Family{"glm4_moe_lite", deepseek_v3},
        Family{"glm_moe_dsa", glm_moe_dsa},
        Family{"kimi_k2", deepseek_v3},
        Family{"kimi_k3", kimi_k3},
        Family{"llama", llama},
        Family{"nemotron_h", nemotron_h},
        Family{"qwen2", qwen2},
        Family{"qwen3", qwen3},
        Family{"qwen3_5", qwen3_5},
        Family{"qwen3_5_moe", qwen3_5_moe},
        Family{"qwen3_5_moe_text", qwen3_5_moe_text},
        Family{"qwen3_moe", qwen3_moe},
        Family{"teaching_matrix", teaching_matrix},
    };
    return kFamilies;
}

}  // namespace refit::families
