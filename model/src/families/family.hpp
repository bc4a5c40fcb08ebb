// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "refit/facts.hpp"
#include "refit/parameter.hpp"

namespace refit::families {

/// What a family makes of the facts. Where `faults` was added to, the rest has no meaning.
struct Parameters {
    std::uint32_t layers = 0;
    std::vector<ParameterClass> classes;
};

/// A model family: one file, which defines one function and is listed once in registry.cpp.
struct Family {
    std::string_view model_type;  ///< `model_type` of config.json.
    Parameters (*parameters)(const Facts& facts, Faults& faults);
};

[[nodiscard]] std::span<const Family> registry() noexcept;

[[nodiscard]] Parameters deepseek_v3(const Facts& facts, Faults& faults);
[[nodiscard]] Parameters glm4(const Facts& facts, Faults& faults);
[[nodiscard]] Parameters glm4_moe(const Facts& facts, Faults& faults);
[[nodiscard]] Parameters glm_moe_dsa(const Facts& facts, Faults& faults);
[[nodiscard]] Parameters kimi_k3(const Facts& facts, Faults& faults);
[[nodiscard]] Parameters llama(const Facts& facts, Faults& faults);
[[nodiscard]] Parameters nemotron_h(const Facts& facts, Faults& faults);
[[nodiscard]] Parameters qwen2(const Facts& facts, Faults& faults);
[[nodiscard]] Parameters qwen3(const Facts& facts, Faults& faults);
[[nodiscard]] Parameters qwen3_5(const Facts& facts, Faults& faults);
[[nodiscard]] Parameters qwen3_5_moe(const Facts& facts, Faults& faults);
[[nodiscard]] Parameters qwen3_5_moe_text(const Facts& facts, Faults& faults);
[[nodiscard]] Parameters qwen3_moe(const Facts& facts, Faults& faults);
[[nodiscard]] Parameters teaching_matrix(const Facts& facts, Faults& faults);

}  // namespace refit::families
