// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "refit/local_tensor.hpp"
#include "refit/result.hpp"

namespace refit {

/// A framework's parameter as a question: how is it built from which tensors of the checkpoint, by what sizes?
struct ContentQuestion {
    std::string framework;  ///< "megatron-bridge" or "vllm".
    std::string kind;       ///< What kind of parameter: "qkv-grouped", "experts-w13-ep-linear" …; docs/content_maps.md.
    std::map<std::string, std::int64_t, std::less<>> numbers;  ///< Sizes and flags (0 or 1) by their configuration names.
    std::map<std::string, std::string, std::less<>> texts;
    std::vector<std::vector<std::uint64_t>> inputs;            ///< Shapes of the checkpoint's tensors.

    /// The number, or `fallback` where it is absent.
    [[nodiscard]] std::uint64_t number_or(std::string_view name, std::uint64_t fallback) const;
};

/// Where every element of the parameter sits, for each global rank.
/// Errors: kInfeasible with the framework's reason as rule ("ffn-not-divisible-by-tp"); kUnsupported for a kind or
/// framework that is not known; kInvalidInput where the inputs do not have the shapes that the sizes say.
/// Source: docs/content_maps.md.
[[nodiscard]] Result<std::vector<LocalTensor>> content_map(const ContentQuestion& question);

}  // namespace refit
