// SPDX-License-Identifier: Apache-2.0
#include "rows_text.hpp"

namespace refit::cli {
namespace {

std::string csv_cell(const std::string& text) {
    if (text.find_first_of(",\"\n\r") == std::string::npos) {
        return text;
    }
    std::string cell = "\"";
    for (const char c : text) {
        cell += c == '"' ? "\"\"" : std::string{c};
    }
    return cell + "\"";
}

std::string markdown_cell(const std::string& text) {
    std::string cell;
    for (const char c : text) {
        cell += c == '|' ? "\\|" : c == '\n' ? " " : std::string{c};
    }
    return cell;
}

}  // namespace

std::string csv(const Row& header, std::span<const Row> rows) {
    std::string text;
    const auto add = [&](const Row& row) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            text += (i == 0 ? "" : ",") + csv_cell(row[i]);
        }
        text += "\n";
    };
    add(header);
    for (const auto& row : rows) {
        add(row);
    }
    return text;
}

std::string markdown(const Row& header, std::span<const Row> rows) {
    std::string text;
    const auto add = [&](const Row& row) {
        for (const auto& cell : row) {
            text += "| " + markdown_cell(cell) + " ";
        }
        text += "|\n";
    };
    add(header);
    for (std::size_t i = 0; i < header.size(); ++i) {
        text += "|---";
    }
    text += "|\n";
    for (const auto& row : rows) {
        add(row);
    }
    return text;
}

std::string rows_text(Format format, const Row& header, std::span<const Row> rows) {
    return format == Format::kCsv ? csv(header, rows) : markdown(header, rows);
}

}  // namespace refit::cli
