// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>
#include <string>
#include <vector>

#include "refit/m2n_settings.hpp"
#include "refit/suggest.hpp"

namespace refit {
namespace {

template <class Value>
Result<Value> parse(std::string_view text, std::span<const Value> values, const std::string& what) {
    std::vector<std::string> names;
    for (const auto value : values) {
        if (name_of(value) == text) {
            return value;
        }
        names.emplace_back(name_of(value));
    }
    return fail(ErrorCode::kInvalidInput,
                "unknown-" + what,
                "unknown " + what + " '" + std::string{text} + "'; the nearest is '" +
                    nearest_name(text, names) + "' (known: " + join_names(names) + ")");
}

}  // namespace

std::string_view name_of(M2nPath path) noexcept {
    switch (path) {
        case M2nPath::kCombined:
            return "combined";
        case M2nPath::kLsa:
            return "lsa";
        case M2nPath::kSplit:
            break;
    }
    return "split";
}

Result<M2nPath> parse_m2n_path(std::string_view text) {
    constexpr std::array kPaths{M2nPath::kSplit, M2nPath::kCombined, M2nPath::kLsa};
    return parse<M2nPath>(text, kPaths, "path");
}

std::string_view name_of(M2nBalance balance) noexcept {
    switch (balance) {
        case M2nBalance::kUniform:
            return "uniform";
        case M2nBalance::kNodeAware:
            return "node-aware";
        case M2nBalance::kAdaptive:
            break;
    }
    return "adaptive";
}

Result<M2nBalance> parse_m2n_balance(std::string_view text) {
    constexpr std::array kBalances{M2nBalance::kAdaptive, M2nBalance::kUniform, M2nBalance::kNodeAware};
    return parse<M2nBalance>(text, kBalances, "balance");
}

}  // namespace refit
