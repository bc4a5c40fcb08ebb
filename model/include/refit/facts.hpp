// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "refit/result.hpp"

namespace refit {

/// The facts of a Hugging Face `config.json`, flattened: nested keys are joined by dots ("text_config.hidden_size").
/// Only what a parameter inventory needs is kept: booleans, whole numbers, strings, lists of either, and nulls.
class Facts {
public:
    using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<std::string>>;

    /// `origin` names the file in messages.
    explicit Facts(std::string origin) : origin_{std::move(origin)} {}

    void set(std::string key, Value value);
    /// The key is there without a value. To all but `positive_or_null` that is the same as no key.
    void set_null(std::string key);

    [[nodiscard]] bool has(std::string_view key) const { return values_.find(key) != values_.end(); }
    [[nodiscard]] const std::string& origin() const noexcept { return origin_; }

    /// A whole number in [1, 2^31). Appends a fault and returns 1 where it is missing or outside.
    [[nodiscard]] std::uint64_t positive(std::string_view key, Faults& faults) const;
    /// The same, but 0 where the value is null.
    [[nodiscard]] std::uint64_t positive_or_null(std::string_view key, Faults& faults) const;
    /// A whole number in [0, 2^31), `fallback` where the key is absent or null.
    [[nodiscard]] std::uint64_t natural_or(std::string_view key, std::uint64_t fallback, Faults& faults) const;
    [[nodiscard]] bool flag_or(std::string_view key, bool fallback, Faults& faults) const;
    [[nodiscard]] std::string text_or(std::string_view key, std::string fallback, Faults& faults) const;
    [[nodiscard]] std::vector<std::string> texts(std::string_view key, Faults& faults) const;
    [[nodiscard]] std::vector<std::int64_t> numbers(std::string_view key, Faults& faults) const;

private:
    template <class T>
    [[nodiscard]] const T* find(std::string_view key, bool required, const char* expected, Faults& faults) const;

    std::string origin_;
    std::map<std::string, Value, std::less<>> values_;
    std::set<std::string, std::less<>> nulls_;
};

}  // namespace refit
