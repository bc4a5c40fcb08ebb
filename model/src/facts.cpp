// SPDX-License-Identifier: Apache-2.0
#include "refit/facts.hpp"

#include <limits>
#include <utility>

#include "refit/suggest.hpp"

namespace refit {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();

}  // namespace

void Facts::set(std::string key, Value value) {
    nulls_.erase(key);
    values_.insert_or_assign(std::move(key), std::move(value));
}

void Facts::set_null(std::string key) {
    values_.erase(key);
    nulls_.insert(std::move(key));
}

template <class T>
const T* Facts::find(std::string_view key, bool required, const char* expected, Faults& faults) const {
    const auto found = values_.find(key);
    if (found == values_.end()) {
        if (required) {
            std::vector<std::string> known;
            for (const auto& [name, value] : values_) {
                known.push_back(name);
            }
            const auto nearest = nearest_name(key, known);
            faults.push_back({ErrorCode::kInvalidInput,
                              "missing-field",
                              "'" + std::string{key} + "' is missing" +
                                  (nearest.empty() ? "" : "; the nearest name there is '" + nearest + "'"),
                              origin_});
        }
        return nullptr;
    }
    const auto* value = std::get_if<T>(&found->second);
    if (value == nullptr) {
        faults.push_back({ErrorCode::kInvalidInput,
                          "field-type",
                          "'" + std::string{key} + "' must be " + expected,
                          origin_});
    }
    return value;
}

std::uint64_t Facts::positive(std::string_view key, Faults& faults) const {
    const auto* value = find<std::int64_t>(key, true, "a whole number", faults);
    if (value != nullptr && (*value < 1 || *value > kLargest)) {
        faults.push_back({ErrorCode::kInvalidInput,
                          "field-range",
                          "'" + std::string{key} + "' is " + std::to_string(*value) + ", but must lie in 1 to 2^31 - 1",
                          origin_});
        return 1;
    }
    return value == nullptr ? 1 : static_cast<std::uint64_t>(*value);
}

std::uint64_t Facts::positive_or_null(std::string_view key, Faults& faults) const {
    return nulls_.find(key) != nulls_.end() ? 0 : positive(key, faults);
}

std::uint64_t Facts::natural_or(std::string_view key, std::uint64_t fallback, Faults& faults) const {
    const auto* value = find<std::int64_t>(key, false, "a whole number", faults);
    if (value != nullptr && (*value < 0 || *value > kLargest)) {
        faults.push_back({ErrorCode::kInvalidInput,
                          "field-range",
                          "'" + std::string{key} + "' is " + std::to_string(*value) + ", but must lie in 0 to 2^31 - 1",
                          origin_});
        return fallback;
    }
    return value == nullptr ? fallback : static_cast<std::uint64_t>(*value);
}

bool Facts::flag_or(std::string_view key, bool fallback, Faults& faults) const {
    const auto* value = find<bool>(key, false, "true or false", faults);
    return value == nullptr ? fallback : *value;
}

std::string Facts::text_or(std::string_view key, std::string fallback, Faults& faults) const {
    const auto* value = find<std::string>(key, false, "a text", faults);
    return value == nullptr ? fallback : *value;
}

std::vector<std::string> Facts::texts(std::string_view key, Faults& faults) const {
    const auto* value = find<std::vector<std::string>>(key, true, "a list of texts", faults);
    return value == nullptr ? std::vector<std::string>{} : *value;
}

std::vector<std::int64_t> Facts::numbers(std::string_view key, Faults& faults) const {
    const auto* value = find<std::vector<std::int64_t>>(key, true, "a list of whole numbers", faults);
    return value == nullptr ? std::vector<std::int64_t>{} : *value;
}

}  // namespace refit
