// SPDX-License-Identifier: Apache-2.0
#include "json_keys.hpp"

#include <algorithm>
#include <unordered_set>

#include <nlohmann/json.hpp>

namespace refit::io {
namespace {

/// An object or list that is open where the walk stands.
struct Level {
    bool is_object = false;
    bool expects_key = false;
    std::string key;        ///< Under which the walk stands, in an object.
    std::size_t index = 0;  ///< The same in a list.
    std::unordered_set<std::string> seen = {};
};

/// Just behind the string that begins at `begin`.
std::size_t end_of_string(std::string_view text, std::size_t begin) {
    auto at = begin + 1;
    while (at < text.size() && text[at] != '"') {
        at += text[at] == '\\' ? 2U : 1U;
    }
    return std::min(at + 1, text.size());
}

/// The string between the quotes, whose escapes may write one key in several ways.
std::string meant(std::string_view quoted) {
    return quoted.find('\\') == std::string_view::npos ? std::string{quoted.substr(1, quoted.size() - 2)}
                                                       : nlohmann::json::parse(quoted).get<std::string>();
}

std::string pointer_to(const std::vector<Level>& levels) {
    std::string pointer;
    for (const auto& level : levels) {
        pointer += "/" + (level.is_object ? level.key : std::to_string(level.index));
    }
    return pointer;
}

}  // namespace

std::vector<RepeatedKey> repeated_keys(std::string_view text) {
    std::vector<RepeatedKey> repeated;
    std::vector<Level> levels;
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        const auto begin = at;
        at = c == '"' ? end_of_string(text, at) : at + 1;
        if (c == '{' || c == '[') {
            levels.push_back({c == '{', c == '{', {}});
        } else if (levels.empty()) {
            continue;
        } else if (c == '}' || c == ']') {
            levels.pop_back();
        } else if (c == ',') {
            levels.back().expects_key = levels.back().is_object;
            ++levels.back().index;
        } else if (c == '"' && levels.back().expects_key) {
            auto& level = levels.back();
            level.key = meant(text.substr(begin, at - begin));
            level.expects_key = false;
            if (!level.seen.insert(level.key).second) {
                repeated.push_back({pointer_to(levels), begin});
            }
        }
    }
    return repeated;
}

}  // namespace refit::io
