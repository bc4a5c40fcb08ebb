// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "family.hpp"

namespace refit::families {

std::span<const Family> registry() noexcept {
    static constexpr std::array kFamilies{
        Family{"deepseek_v3", deepseek_v3},
        Family{"kimi_k2", deepseek_v3},
        Family{"kimi_k3", kimi_k3},
        Family{"nemotron_h", nemotron_h},
        Family{"qwen3_5_moe_text", qwen3_5_moe},
        Family{"qwen3_moe", qwen3_moe},
        Family{"teaching_matrix", teaching_matrix},
    };
    return kFamilies;
}

}  // namespace refit::families
