// SPDX-License-Identifier: Apache-2.0
#include "refit/wrap.hpp"

#include <algorithm>

namespace refit {

std::string wrap(const std::string& text, std::size_t width, std::size_t indent) {
    std::string result;
    std::size_t column = indent;
    std::size_t begin = 0;
    while (begin < text.size()) {
        const auto word_begin = std::min(text.find_first_not_of(' ', begin), text.size());
        const auto end = std::min(text.find(' ', word_begin), text.size());
        const auto spaces = word_begin - begin;
        const auto word = text.substr(word_begin, end - word_begin);
        if (column > indent && column + spaces + word.size() > width) {
            result += "\n" + std::string(indent, ' ');
            column = indent;
        } else {
            result += std::string(spaces, ' ');
            column += spaces;
        }
        result += word;
        column += word.size();
        begin = end;
    }
    return result;
}

}  // namespace refit
