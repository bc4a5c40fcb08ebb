// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "refit/result.hpp"

namespace refit {

/// Element type of a parameter as it is stored and moved.
enum class Dtype : std::uint8_t { kBf16, kFp16, kFp32, kFp8 };

/// Size of one element. Unit: byte.
[[nodiscard]] std::uint64_t size_of(Dtype dtype) noexcept;

/// "bf16", "fp16", "fp32", "fp8".
[[nodiscard]] std::string_view name_of(Dtype dtype) noexcept;

/// Reads the names above and the spellings of PyTorch, Hugging Face and NeMo RL ("bfloat16", "float32" …).
/// Errors: kInvalidInput naming the nearest known dtype.
[[nodiscard]] Result<Dtype> parse_dtype(std::string_view text);

}  // namespace refit
