// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "canvas.hpp"
#include "refit/gui/table.hpp"

namespace refit::gui {
namespace {

/// What the first column of shares says, as bars in the room that the columns leave.
class ShareBars {
public:
    ShareBars(const Table& table, const Frame& room) : room_{room} {
        for (const auto& row : table.rows) {
            const auto found =
                std::ranges::find_if(row.cells, [](const TableCell& cell) { return cell.share.has_value(); });
            if (found != row.cells.end()) {
                column_ = static_cast<std::size_t>(found - row.cells.begin());
                most_ = std::max(most_, *found->share);
            }
        }
    }

    void draw(Scene& scene, const TableRow& row, double y, double height) const {
        if (most_ > 0.0 && room_.width >= kLeast && row.cells[column_].share) {
            scene.add(RectMark{{room_.x,
                                y + 5.0,
                                std::max(1.0, room_.width * *row.cells[column_].share / most_),
                                height - 10.0},
                               {Ink::kAccent, 0.45},
                               {},
                               1.0,
                               Pattern::kSolid,
                               1.5});
        }
    }

private:
    static constexpr double kLeast = 60.0;
    Frame room_;
    std::size_t column_ = 0;
    double most_ = 0.0;
};

/// Columns that fit.
struct Columns {
    std::vector<double> widths;
    std::vector<std::string> heads;
};

/// "bytes on NVLink" without words from its front, until it is no wider than the room or one word.
std::string shortened(std::string head, double room) {
    for (auto space = head.find(' '); space != std::string::npos && text_width(head, 12.5) > room;
         space = head.find(' ')) {
        head.erase(0, space + 1);
    }
    return head;
}

/// As wide as what they show, and up to 70 pixels more. Where there is no room for that, heads are shortened,
/// and the last columns left out: a cut number is none.
Columns columns_of(const Table& table, double room) {
    constexpr std::size_t kMeasured = 2000;
    Columns columns;
    std::vector<double> cells;
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
        auto width = 0.0;
        for (std::size_t row = 0; row < std::min(kMeasured, table.rows.size()); ++row) {
            width = std::max(width, text_width(table.rows[row].cells[column].text, 12.0));
        }
        cells.push_back(width);
        columns.heads.push_back(table.columns[column]);
        columns.widths.push_back(std::max(width, text_width(table.columns[column], 12.5)) + 18.0);
    }
    const auto sum = [&] { return std::accumulate(columns.widths.begin(), columns.widths.end(), 0.0); };
    for (std::size_t column = 0; column < cells.size() && sum() > room; ++column) {
        columns.heads[column] = shortened(columns.heads[column], cells[column]);
        columns.widths[column] = std::max(cells[column], text_width(columns.heads[column], 12.5)) + 10.0;
    }
    while (columns.widths.size() > 2 && sum() > room) {
        columns.widths.pop_back();
    }
    const auto spare = std::clamp((room - sum()) / static_cast<double>(columns.widths.size()), 0.0, 70.0);
    for (auto& width : columns.widths) {
        width += spare;
    }
    return columns;
}

}  // namespace

Scene table_view(Canvas canvas) {
    const auto& state = canvas.state;
    const auto table = make_table(canvas.answer, state, state.listing);
    const auto columns = columns_of(table, canvas.body.width);
    const auto& widths = columns.widths;
    const auto missing = table.columns.size() - widths.size();
    canvas.header("The numbers: " + std::string{title_of(state.listing)},
                  grouped(table.rows.size()) + " rows, the most first; " +
                      (missing > 0 ? grouped(missing) + (missing == 1 ? " more column" : " more columns") +
                                         " in a wider view; "
                                   : "") +
                      "Shift+L lists something else; " + headline_of(canvas.answer.a));
    const auto& body = canvas.body;
    constexpr double kRow = 21.0;
    const auto fits = static_cast<std::size_t>(std::max(1.0, (body.height - kRow) / kRow));
    const auto most = table.rows.size() > fits ? table.rows.size() - fits : 0;
    canvas.scene.most_scroll = kRow * static_cast<double>(most);
    const auto first = std::min(static_cast<std::size_t>(state.scroll / kRow + 0.5), most);
    const auto last = std::min(table.rows.size(), first + fits);
    const auto end = std::accumulate(widths.begin(), widths.end(), body.x);
    const ShareBars bars{table, {end + 10.0, body.y, body.right() - end - 16.0, body.height}};
    const auto row_cells = [&](double y, std::size_t row, bool is_head) {
        double x = body.x;
        for (std::size_t column = 0; column < widths.size(); ++column) {
            const bool is_number = !table.rows.empty() && table.rows.front().cells[column].is_number;
            const auto text = is_head ? columns.heads[column] : table.rows[row].cells[column].text;
            canvas.scene.text({x + 4.0, y, widths[column] - 8.0, kRow},
                              text,
                              is_head ? Ink::kMuted : Ink::kText,
                              is_number ? Align::kRight : Align::kLeft,
                              is_head ? 11.5 : 12.0,
                              is_head);
            x += widths[column];
        }
        return x;
    };
    row_cells(body.y, 0, true);
    canvas.scene.line({body.x, body.y + kRow}, {body.right(), body.y + kRow}, Ink::kOutline);
    for (auto row = first; row < last; ++row) {
        const auto y = body.y + kRow * static_cast<double>(row - first + 1);
        const Frame frame{body.x, y, body.width, kRow};
        if (state.selection == table.rows[row].target) {
            canvas.scene.add(RectMark{frame, {Ink::kAccent, 0.2}, {Ink::kAccent}, 2.0});
        } else if (row % 2 == 1) {
            canvas.scene.add(RectMark{frame, {Ink::kPanel}});
        }
        row_cells(y, row, false);
        bars.draw(canvas.scene, table.rows[row], y, kRow);
        std::string name;
        for (std::size_t column = 0; column < table.columns.size(); ++column) {
            name +=
                (column == 0 ? "" : ", ") + table.columns[column] + " " + table.rows[row].cells[column].text;
        }
        canvas.element(table.rows[row].target, name, frame);
    }
    if (table.rows.empty()) {
        canvas.nothing("Nothing to list",
                       state.filter.is_set() ? "no row fits the filter; Esc clears it" : "not simulated yet");
    }
    return std::move(canvas.scene);
}

}  // namespace refit::gui
