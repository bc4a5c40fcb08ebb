// SPDX-License-Identifier: Apache-2.0
#include "refit/shell_word.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace refit {

std::string shell_word(const std::string& word) {
    constexpr std::string_view kPlain = "._-+:/@%,=";
    const bool is_plain = !word.empty() && std::ranges::all_of(word, [&](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != std::string_view::npos;
    });
    if (is_plain) {
        return word;
    }
    std::string text = "'";
    for (const char c : word) {
        text += c == '\'' ? "'\\''" : std::string{c};
    }
    return text + "'";
}

}  // namespace refit
