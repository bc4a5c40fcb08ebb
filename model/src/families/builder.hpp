// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "refit/parameter.hpp"

namespace refit::families {

using Shape = std::vector<std::uint64_t>;
using Layers = std::vector<std::uint32_t>;

/// Layers `first`, `first + 1` … `last - 1`.
[[nodiscard]] Layers layer_range(std::uint64_t first, std::uint64_t last);

/// Dimensions of multi-head latent attention; `query_rank` 0: the queries have no latent.
struct LatentAttention {
    std::uint64_t hidden, heads, query_rank, kv_rank, nope, rope, value;
};

/// Collects the classes of a model, in the order of a layer's execution.
/// Each call adds one class; the returned reference is good until the next call.
class Builder {
public:
    /// Classes added from here on belong to `layers` and to `part`, and their names begin with `prefix`.
    void enter(std::string prefix, Layers layers, ModelPart part = ModelPart::kText);
    /// Classes added from here on lie outside the layers: beside the embedding, or beside the final norm.
    void enter_outside(std::string prefix, bool on_last_stage, ModelPart part = ModelPart::kText);

    ParameterClass& replicated(std::string name, Shape shape);
    ParameterClass& vocabulary(std::string name, Shape shape);
    /// `units`: what tensor parallelism must divide, named `units_name`; 0 means the rows themselves.
    ParameterClass& column(std::string name, Shape shape, std::uint64_t units, std::string units_name);
    ParameterClass& row(std::string name, Shape shape, std::uint64_t units, std::string units_name);
    ParameterClass& segmented(std::string name, Shape shape, Shape segments, std::uint64_t units, std::string units_name);

    /// q, k and v projections, `{query rows, hidden}` and so on: one export task.
    void attention_projections(std::string prefix, const AttentionHeads& heads, std::uint64_t hidden);
    /// Biases of q, k and v: fused, and cut, as their weights are.
    void attention_biases(const std::string& prefix, const AttentionHeads& heads);
    /// Down projections to the latents with their norms, up projections from them by head, and the output. Without
    /// a latent of the queries these are projected at once.
    void latent_attention(const std::string& prefix, const LatentAttention& d);
    /// gate (where `gated`), up and down of a dense MLP or of shared experts; `is_ffn` only for the former.
    void mlp(std::string prefix, std::uint64_t hidden, std::uint64_t width, bool gated, bool is_ffn);
    /// gate (where `gated`), up and down of routed experts; `names` are in that order.
    struct ExpertNames {
        std::string gate;
        std::string up;
        std::string down;
    };
    void experts(std::string prefix, const ExpertNames& names, std::uint64_t count, std::uint64_t hidden,
                 std::uint64_t width);

    /// Router with its FP32 bias, routed experts, and shared ones where there are any, named as DeepSeek-V3 names them.
    struct Moe {
        std::uint64_t hidden, experts, expert_width, shared_experts;
    };
    void biased_moe(const Moe& moe);
    /// What joins an MTP layer to the model: its projection and norms, and where `has_copies`, its own embedding and head.
    void mtp_joint(std::uint64_t hidden, std::uint64_t vocabulary_rows, bool has_copies);

    [[nodiscard]] std::vector<ParameterClass> finish() && { return std::move(classes_); }

private:
    ParameterClass& add(std::string name, Shape shape, Sharding sharding);

    std::string prefix_;
    Layers layers_;
    ModelPart part_ = ModelPart::kText;
    bool on_last_stage_ = false;
    std::vector<ParameterClass> classes_;
};

}  // namespace refit::families
