// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace refit {

/// `rows` rounded up to a multiple of `multiple`.
[[nodiscard]] constexpr std::uint64_t padded_rows(std::uint64_t rows, std::uint64_t multiple) noexcept {
    return (rows + multiple - 1) / multiple * multiple;
}

/// Of what the rows of a vocabulary, as trainers pad it, are a multiple: `make_vocab_size_divisible_by` times
/// TP, where the bridge takes the largest power of two up to 128 that divides the rows. Pre: rows > 0.
/// Source: Megatron-Bridge models/conversion/model_bridge.py, make_vocab_size_divisible_by; Megatron-LM
/// vocab_utils.py.
[[nodiscard]] constexpr std::uint64_t trainer_vocabulary_multiple(std::uint64_t rows,
                                                                  std::uint32_t tp) noexcept {
    std::uint64_t divisor = 128;
    while (rows % divisor != 0) {
        divisor /= 2;
    }
    return divisor * tp;
}

/// The same for generators, whatever their TP.
/// Source: vLLM vocab_parallel_embedding.py, DEFAULT_VOCAB_PADDING_SIZE.
constexpr std::uint64_t kGeneratorVocabularyMultiple = 64;

}  // namespace refit
