// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "refit/content_map.hpp"

namespace refit::maps {

using Tensors = std::vector<LocalTensor>;

/// The framework refuses the configuration for this reason.
struct Refusal {
    ErrorCode code;
    std::string rule;
    std::string message;
};

/// Ends the building of a map; caught where the question was asked.
[[noreturn]] void refuse(const char* rule);
void require(bool holds, const char* rule);

/// One question with its inputs as tensors.
class Question {
public:
    explicit Question(const ContentQuestion& asked) : asked_{asked} {}

    [[nodiscard]] const std::string& kind() const noexcept { return asked_.kind; }
    [[nodiscard]] bool is(std::string_view part) const { return asked_.kind.find(part) != std::string::npos; }
    [[nodiscard]] bool begins(std::string_view part) const { return asked_.kind.starts_with(part); }
    [[nodiscard]] std::uint64_t number(std::string_view name) const;
    [[nodiscard]] std::uint64_t number_or(std::string_view name, std::uint64_t fallback) const { return asked_.number_or(name, fallback); }
    [[nodiscard]] std::string text_or(std::string_view name, std::string fallback) const;
    [[nodiscard]] std::size_t inputs() const noexcept { return asked_.inputs.size(); }
    /// Input `index`, all of it.
    [[nodiscard]] LocalTensor input(std::size_t index) const;

private:
    const ContentQuestion& asked_;
};

/// `tensor` cut along `axis` into segments of these lengths. Refuses inputs of another size.
[[nodiscard]] Tensors segments(const LocalTensor& tensor, std::size_t axis, const std::vector<std::uint64_t>& lengths);
[[nodiscard]] LocalTensor joined(const Tensors& parts, std::size_t axis = 0);
/// Part `index` of each tensor along dim 0, joined. Refuses with `rule` where one does not divide.
[[nodiscard]] LocalTensor parts_of(const Tensors& tensors, std::uint64_t ways, std::uint64_t index, const char* rule);
/// Every second index along `axis`, from `first` on.
[[nodiscard]] LocalTensor every_second(const LocalTensor& tensor, std::size_t axis, std::uint64_t first);
/// Expert `expert` of a stacked [E, rows, columns] tensor, turned so that its rows are `rows` long where need be.
[[nodiscard]] LocalTensor expert_slice(const LocalTensor& stacked, std::uint64_t expert);

/// Segment lengths of a Mamba input projection [z, x, B, C, dt], or of its convolution [x, B, C].
[[nodiscard]] std::vector<std::uint64_t> mamba_segments(const Question& question, bool is_convolution);
/// Segment lengths [q, k, v] of a gated delta net.
[[nodiscard]] std::vector<std::uint64_t> delta_net_segments(const Question& question);

[[nodiscard]] LocalTensor megatron_rank(const Question& question, std::uint64_t rank);
[[nodiscard]] LocalTensor vllm_rank(const Question& question, std::uint64_t rank);

}  // namespace refit::maps
