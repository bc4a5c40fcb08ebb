// SPDX-License-Identifier: Apache-2.0
#include "refit/dtype.hpp"

#include <array>
#include <string>
#include <vector>

#include "refit/suggest.hpp"

namespace refit {
namespace {

struct Spelling {
    std::string_view text;
    Dtype dtype;
};

constexpr std::array kSpellings{
    Spelling{"bf16", Dtype::kBf16},    Spelling{"bfloat16", Dtype::kBf16}, Spelling{"fp16", Dtype::kFp16},
    Spelling{"float16", Dtype::kFp16}, Spelling{"half", Dtype::kFp16},     Spelling{"fp32", Dtype::kFp32},
    Spelling{"float32", Dtype::kFp32}, Spelling{"float", Dtype::kFp32},    Spelling{"fp8", Dtype::kFp8},
};

}  // namespace

std::uint64_t size_of(Dtype dtype) noexcept {
    switch (dtype) {
        case Dtype::kFp32:
            return 4;
        case Dtype::kFp8:
            return 1;
        case Dtype::kBf16:
        case Dtype::kFp16:
            break;
    }
    return 2;
}

std::string_view name_of(Dtype dtype) noexcept {
    switch (dtype) {
        case Dtype::kFp16:
            return "fp16";
        case Dtype::kFp32:
            return "fp32";
        case Dtype::kFp8:
            return "fp8";
        case Dtype::kBf16:
            break;
    }
    return "bf16";
}

Result<Dtype> parse_dtype(std::string_view text) {
    std::vector<std::string> names;
    for (const auto& spelling : kSpellings) {
        if (spelling.text == text) {
            return spelling.dtype;
        }
        names.emplace_back(spelling.text);
    }
    const auto nearest = nearest_name(text, names);
    return fail(Faults{{ErrorCode::kInvalidInput,
                        "unknown-dtype",
                        "unknown dtype '" + std::string{text} + "'; did you mean '" + nearest + "'?",
                        "",
                        Suggestion{"", nearest, ""}}});
}

}  // namespace refit
