// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "refit/gui/views.hpp"

namespace refit::gui {

/// One cell: what people read, and for files the exact value in the "C" locale.
struct TableCell {
    std::string text;
    std::string exact;
    bool is_number = false;
    std::optional<double> share = std::nullopt;  ///< Of a whole, which a bar may show. Range: 0 to 1.
};

struct TableRow {
    Target target;
    std::vector<TableCell> cells;
};

/// Everything that the pictures show, in words and numbers.
struct Table {
    std::vector<std::string> columns;  ///< With units: "bytes", "seconds".
    std::vector<TableRow> rows;        ///< The most important first.
};

/// Cost: in flows or tasks.
[[nodiscard]] Table make_table(const Answer& answer, const ViewState& state, Listing listing);

/// Of all its rows, with a header; fields are quoted where RFC 4180 asks for it.
[[nodiscard]] std::string to_csv(const Table& table);
/// The same with tabs, for a clipboard; of these rows only, or all where none are given.
[[nodiscard]] std::string to_tsv(const Table& table, const std::vector<Target>& only = {});

/// What is known of the thing that is selected: a headline, then "name: value" lines.
struct Detail {
    std::string title;
    std::vector<std::pair<std::string, std::string>> lines;
};
[[nodiscard]] Detail details_of(const Answer& answer, const ViewState& state);

/// The bar below the views: A's time, bytes and bottleneck, and B's time beside it; then the same with ever less, down
/// to the two times, for bars without room.
[[nodiscard]] std::vector<std::string> result_texts(const Answer& answer);

/// Where A and B differ: name, A's value, B's value, difference. Only lines that differ, where that is asked for.
struct Difference {
    std::string name;
    std::string a;
    std::string b;
    std::string delta;     ///< B minus A; empty where it is no number.
    double value = 0.0;    ///< The difference as a number.
    bool is_same = true;
};
[[nodiscard]] std::vector<Difference> differences(const Shown& a, const Shown& b, bool only_unequal);

}  // namespace refit::gui
