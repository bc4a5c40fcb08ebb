// SPDX-License-Identifier: Apache-2.0
#include "refit/content_map.hpp"

#include <utility>

#include "composition.hpp"

namespace refit {
namespace maps {

void refuse(const char* rule) { throw Refusal{ErrorCode::kInfeasible, rule, "the framework refuses this configuration"}; }

void require(bool holds, const char* rule) {
    if (!holds) {
        refuse(rule);
    }
}

std::uint64_t Question::number(std::string_view name) const {
    const auto found = asked_.numbers.find(name);
    if (found == asked_.numbers.end() || found->second < 1) {
        throw Refusal{ErrorCode::kInvalidInput, "missing-field", "the configuration has no positive '" + std::string{name} + "'"};
    }
    return static_cast<std::uint64_t>(found->second);
}

std::string Question::text_or(std::string_view name, std::string fallback) const {
    const auto found = asked_.texts.find(name);
    return found == asked_.texts.end() ? std::move(fallback) : found->second;
}

LocalTensor Question::input(std::size_t index) const {
    if (index >= asked_.inputs.size()) {
        throw Refusal{ErrorCode::kInvalidInput, "missing-input", "this kind needs more input tensors"};
    }
    return LocalTensor::whole(static_cast<std::uint32_t>(index), asked_.inputs[index]);
}

Tensors segments(const LocalTensor& tensor, std::size_t axis, const std::vector<std::uint64_t>& lengths) {
    Tensors parts;
    std::uint64_t offset = 0;
    for (const auto length : lengths) {
        if (offset + length > tensor.shape()[axis]) {
            throw Refusal{ErrorCode::kInvalidInput, "input-shape", "an input is smaller than the configuration says"};
        }
        parts.push_back(tensor.slice(axis, {offset, offset + length}));
        offset += length;
    }
    if (offset != tensor.shape()[axis]) {
        throw Refusal{ErrorCode::kInvalidInput, "input-shape", "an input is larger than the configuration says"};
    }
    return parts;
}

LocalTensor joined(const Tensors& parts, std::size_t axis) { return LocalTensor::concat(parts, axis); }

LocalTensor parts_of(const Tensors& tensors, std::uint64_t ways, std::uint64_t index, const char* rule) {
    Tensors parts;
    for (const auto& tensor : tensors) {
        require(tensor.shape()[0] % ways == 0, rule);
        parts.push_back(tensor.part(0, ways, index));
    }
    return joined(parts);
}

LocalTensor every_second(const LocalTensor& tensor, std::size_t axis, std::uint64_t first) {
    Tensors rows;
    for (auto i = first; i < tensor.shape()[axis]; i += 2) {
        rows.push_back(tensor.slice(axis, {i, i + 1}));
    }
    return joined(rows, axis);
}

LocalTensor expert_slice(const LocalTensor& stacked, std::uint64_t expert) {
    return stacked.slice(0, {expert, expert + 1}).without_axis(0);
}

std::vector<std::uint64_t> mamba_segments(const Question& question, bool is_convolution) {
    const auto heads = question.number("mamba_num_heads");
    const auto inner = heads * question.number("mamba_head_dim");
    const auto state = question.number("mamba_num_groups") * question.number("mamba_state_dim");
    return is_convolution ? std::vector{inner, state, state} : std::vector{inner, inner, state, state, heads};
}

std::vector<std::uint64_t> delta_net_segments(const Question& question) {
    const auto keys = question.number("linear_num_key_heads") * question.number("linear_key_head_dim");
    return {keys, keys, question.number("linear_num_value_heads") * question.number("linear_value_head_dim")};
}

}  // namespace maps

std::uint64_t ContentQuestion::number_or(std::string_view name, std::uint64_t fallback) const {
    const auto found = numbers.find(name);
    return found == numbers.end() || found->second < 0 ? fallback : static_cast<std::uint64_t>(found->second);
}

Result<std::vector<LocalTensor>> content_map(const ContentQuestion& question) {
    const bool is_vllm = question.framework == "vllm";
    if (!is_vllm && question.framework != "megatron-bridge") {
        return fail(ErrorCode::kUnsupported, "unknown-framework", "framework '" + question.framework + "' is none of megatron-bridge and vllm");
    }
    const maps::Question asked{question};
    constexpr std::uint64_t kMostRanks = 1U << 20U;
    const auto ranks = question.number_or("world_size", question.number_or("tp", 1) * question.number_or("dp", 1));
    std::vector<LocalTensor> tensors;
    try {
        for (std::uint64_t rank = 0; rank < std::min(ranks, kMostRanks); ++rank) {
            tensors.push_back(is_vllm ? maps::vllm_rank(asked, rank) : maps::megatron_rank(asked, rank));
        }
    } catch (const maps::Refusal& refusal) {
        return fail(refusal.code, refusal.rule, refusal.message, question.kind);
    }
    return tensors;
}

}  // namespace refit
