// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "refit/dtype.hpp"
#include "refit/units.hpp"

namespace refit {

/// Which part of a checkpoint a parameter belongs to. MTP layers are left out of a refit's payload.
enum class ModelPart : std::uint8_t { kText, kMtp, kVision };

/// How tensor parallelism divides a parameter. The generators for each side interpret it
/// (Megatron pads vocabularies to 128·TP, vLLM to 64; and so on).
/// Source: Megatron-Core tensor_parallel/layers.py, vLLM linear.py, as collected in docs/models.md.
enum class Sharding : std::uint8_t {
    kReplicated,
    kVocabulary,  ///< dim 0, padded.
    kColumn,      ///< dim 0, each segment apart.
    kRow,         ///< dim 1.
    kQuery,       ///< dim 0 of a q projection that the trainer fuses per KV group.
    kKey,         ///< dim 0 of a k projection, likewise; replicated where generation TP exceeds the KV heads.
    kValue,       ///< as kKey.
};

/// Heads of the attention block that a q, k or v projection belongs to.
struct AttentionHeads {
    std::uint64_t query = 0;
    std::uint64_t key_value = 0;
    std::uint64_t rows_per_query_head = 0;  ///< head_dim, or twice that where an output gate is stored beside q.
    std::uint64_t rows_per_key_value_head = 0;
    bool operator==(const AttentionHeads&) const = default;

    /// Whether a query head's rows are its queries and then as many rows of its output gate.
    [[nodiscard]] bool has_output_gate() const noexcept { return rows_per_query_head == 2 * rows_per_key_value_head; }
};

/// What the export on the trainers does with a parameter: parameters that Megatron stores fused are one task.
enum class ExportTask : std::uint8_t {
    kOwn,          ///< a task of its own.
    kFusedLeader,  ///< the first tensor of a fused task (q of qkv, gate of gate+up): counts as one task.
    kFusedMember,  ///< another tensor of that task: counts as none.
};

/// How the model's own checkpoint stores a parameter.
enum class NativeStorage : std::uint8_t {
    kPlain,         ///< In its dtype.
    kFp8Blocks,     ///< FP8 with one FP32 scale for each block of 128 x 128.
    kMxfp4Groups,   ///< Four bits an element, one byte of scale for each 32 elements of a row.
};

/// Every tensor of one name pattern: the same shape, dtype and sharding in each layer and for each expert.
///
/// Shape: that of one Hugging Face tensor, outermost first.
/// Invariant: `layers` is ascending; an expert class has `experts` >= 1 tensors in each of its layers.
struct ParameterClass {
    std::string name;  ///< With {layer} and {expert}: "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight".
    std::vector<std::uint64_t> shape;
    Dtype dtype = Dtype::kBf16;
    ModelPart part = ModelPart::kText;
    Sharding sharding = Sharding::kReplicated;
    std::vector<std::uint64_t> segments;  ///< Lengths along dim 0 that are cut apart; empty means one, all of it.
    std::uint64_t units = 0;              ///< Indivisible units along the cut dimension (heads …); 0: its elements.
    std::string units_name;               ///< "attention heads", "expert width" …, for messages.
    AttentionHeads heads;                 ///< Only for kQuery, kKey, kValue.
    bool is_projection = false;           ///< A weight that blockwise FP8 training quantises, where that is known.
    bool is_ffn = false;                  ///< gate, up or down of a dense MLP or a routed expert, whatever its name.
    std::uint32_t experts = 0;            ///< Routed experts; 0: not an expert.
    std::vector<std::uint32_t> layers;    ///< Layers that have it; empty for a parameter outside the layers.
    bool is_tied = false;                 ///< An embedding that is also the head: the last stage holds it too.
    bool on_last_stage = false;           ///< Outside the layers: with the final norm and head, not the embedding.
    ExportTask task = ExportTask::kOwn;
    NativeStorage native = NativeStorage::kPlain;
    bool operator==(const ParameterClass&) const = default;

    [[nodiscard]] bool is_expert() const noexcept { return experts > 0; }
    /// Tensors of the checkpoint in one layer.
    [[nodiscard]] std::uint64_t tensors_per_layer() const noexcept { return experts > 0 ? experts : 1; }
    [[nodiscard]] std::uint64_t tensors() const noexcept;
    [[nodiscard]] std::uint64_t elements() const;  ///< Of one tensor. Errors: overflow throws.
    /// Of one tensor, without rows beyond the last segment: those are padding. Errors: overflow throws.
    [[nodiscard]] std::uint64_t parameters() const;
    [[nodiscard]] Bytes tensor_bytes() const;      ///< Of one tensor.
    [[nodiscard]] Bytes bytes() const;             ///< Of all tensors of the class.
    [[nodiscard]] Bytes native_bytes() const;      ///< The same in the model's own checkpoint, scales included.
};

}  // namespace refit
