// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "builder.hpp"
#include "refit/facts.hpp"
#include "refit/result.hpp"

namespace refit::families {

/// A number of layers, required. Range: [1, 4096], so that no file can ask for billions of layers.
[[nodiscard]] std::uint64_t layer_count(const Facts& facts, std::string_view key, Faults& faults);
/// A number of layers in [0, 4096]; 0 where the key is absent.
[[nodiscard]] std::uint64_t layer_count_or_none(const Facts& facts, std::string_view key, Faults& faults);

/// Adds a fault that says what is wrong with a field.
void refuse(const Facts& facts, std::string message, Faults& faults);
/// Adds a fault where the flag is set to anything but `modelled`: the tensors of the other setting are
/// unknown.
void expect_flag(const Facts& facts, std::string_view key, bool modelled, Faults& faults);
/// Adds a fault unless `value` of `key` is a multiple of `unit` of `unit_key`.
void expect_multiple(const Facts& facts,
                     std::string_view key,
                     std::uint64_t value,
                     std::string_view unit_key,
                     std::uint64_t unit,
                     Faults& faults);
/// Adds a fault where `value` of `key` exceeds `limit` of `limit_key`.
void expect_at_most(const Facts& facts,
                    std::string_view key,
                    std::uint64_t value,
                    std::string_view limit_key,
                    std::uint64_t limit,
                    Faults& faults);
/// Adds a fault for the first entry of the layer list `key` that is none of `known`.
void expect_kinds(const Facts& facts,
                  std::string_view key,
                  const std::vector<std::string>& kinds,
                  std::initializer_list<std::string> known,
                  Faults& faults);
/// Adds a fault unless the layer list `key` has `layers` entries.
void expect_length(
    const Facts& facts, std::string_view key, std::size_t length, std::uint64_t layers, Faults& faults);

/// Whether the checkpoint is FP8 in blocks of 128 x 128, by `quantization_config` below `prefix`.
[[nodiscard]] bool is_fp8_in_blocks(const Facts& facts, const std::string& prefix, Faults& faults);

/// Marks what blockwise FP8 training quantises: every matrix of text and MTP but embedding, head, router, MTP's joint
/// and the weights of an indexer's heads. For families without state-space layers, whose quantisation is known.
/// Source: public FP8 checkpoints of DeepSeek-V3 and Qwen3; vLLM models/deepseek_v2.py, where `weights_proj` of the
/// indexer has no quantisation.
void mark_projections(std::vector<ParameterClass>& classes);

/// Positions of `kind` in a list of layer kinds.
[[nodiscard]] Layers layers_of(const std::vector<std::string>& kinds, std::string_view kind);

}  // namespace refit::families
