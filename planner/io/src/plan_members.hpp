// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "refit/result.hpp"

namespace refit::io {

inline constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();

/// Members of one object, with the place of each in messages. Reads on after a fault, with empty values.
class Members {
public:
    Members(const nlohmann::json& object, std::string place, Faults& faults)
        : object_{object}, place_{std::move(place)}, faults_{faults} {
        if (!object.is_object()) {
            refuse("", "must be an object");
        }
    }

    [[nodiscard]] const std::string& place() const noexcept { return place_; }

    void refuse(const std::string& key, const std::string& message) const {
        faults_.push_back({ErrorCode::kInvalidInput,
                           "plan-member",
                           (key.empty() ? "this member " : "'" + key + "' ") + message,
                           place_ + (key.empty() ? "" : "/" + key)});
    }

    [[nodiscard]] const nlohmann::json& get(const std::string& key) const {
        static const nlohmann::json nothing;
        if (!object_.is_object()) {
            return nothing;
        }
        const auto found = object_.find(key);
        if (found == object_.end()) {
            refuse(key, "is missing");
            return nothing;
        }
        return *found;
    }

    [[nodiscard]] bool has(const std::string& key) const { return object_.is_object() && object_.contains(key); }

    [[nodiscard]] std::uint64_t number(const std::string& key, std::uint64_t most, std::uint64_t least = 0) const {
        const auto& value = get(key);
        if (value.is_null()) {
            return least;
        }
        if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most || value.get<std::uint64_t>() < least) {
            refuse(key, "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most) + ", not " + shown(value));
            return least;
        }
        return value.get<std::uint64_t>();
    }
    [[nodiscard]] std::uint32_t index(const std::string& key, std::uint64_t most) const {
        return static_cast<std::uint32_t>(number(key, std::min(most, kMost32)));
    }
    [[nodiscard]] std::string text(const std::string& key) const {
        const auto& value = get(key);
        if (!value.is_string()) {
            refuse(key, "must be a text");
            return {};
        }
        return value.get<std::string>();
    }
    [[nodiscard]] bool flag(const std::string& key) const {
        const auto& value = get(key);
        if (!value.is_boolean()) {
            refuse(key, "must be true or false");
            return false;
        }
        return value.get<bool>();
    }

    /// Whole numbers below `end`.
    template <class T>
    [[nodiscard]] std::vector<T> numbers(const std::string& key, std::uint64_t end) const {
        std::vector<T> values;
        const auto& list = array(key);
        values.reserve(list.size());
        for (const auto& value : list) {
            if (!value.is_number_unsigned() || value.template get<std::uint64_t>() >= end) {
                refuse(key + "/" + std::to_string(values.size()), "must be a whole number below " + std::to_string(end) + ", not " + shown(value));
                return {};
            }
            values.push_back(static_cast<T>(value.template get<std::uint64_t>()));
        }
        return values;
    }

    [[nodiscard]] const nlohmann::json& array(const std::string& key) const {
        static const nlohmann::json nothing = nlohmann::json::array();
        const auto& value = get(key);
        if (!value.is_array()) {
            refuse(key, "must be a list");
            return nothing;
        }
        return value;
    }

    /// The objects of a list, one after the other.
    template <class Each>
    void each(const std::string& key, Each&& visit) const {
        std::size_t i = 0;
        for (const auto& value : array(key)) {
            visit(Members{value, place_ + "/" + key + "/" + std::to_string(i++), faults_});
        }
    }
    [[nodiscard]] Members object(const std::string& key) const { return {get(key), place_ + "/" + key, faults_}; }

    template <class Key, std::size_t Size>
    [[nodiscard]] Key named(const std::string& key, const std::array<std::pair<Key, std::string_view>, Size>& names) const {
        const auto name = text(key);
        for (const auto& [value, known] : names) {
            if (known == name) {
                return value;
            }
        }
        refuse(key, "is not known: '" + name + "'");
        return names.front().first;
    }

private:
    [[nodiscard]] static std::string shown(const nlohmann::json& value) {
        auto text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        return text.size() > 40 ? text.substr(0, 37) + "..." : text;
    }

    const nlohmann::json& object_;
    std::string place_;
    Faults& faults_;
};

}  // namespace refit::io
