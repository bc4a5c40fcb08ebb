// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "refit/gui/target.hpp"
#include "refit/gui/theme.hpp"

namespace refit::gui {

// Lengths in a scene are logical pixels, y downwards.

struct Point {
    double x = 0.0;
    double y = 0.0;
    bool operator==(const Point&) const = default;
};

struct Frame {
    double x = 0.0;
    double y = 0.0;
    double width = 0.0;
    double height = 0.0;

    [[nodiscard]] double right() const noexcept { return x + width; }
    [[nodiscard]] double bottom() const noexcept { return y + height; }
    [[nodiscard]] Point centre() const noexcept { return {x + width / 2.0, y + height / 2.0}; }
    [[nodiscard]] bool contains(Point p) const noexcept {
        return p.x >= x && p.x < right() && p.y >= y && p.y < bottom();
    }
    [[nodiscard]] Frame inset(double by) const noexcept { return {x + by, y + by, width - 2.0 * by, height - 2.0 * by}; }
    bool operator==(const Frame&) const = default;
};

/// Colour is never the only sign of a kind: a pattern goes with it.
enum class Pattern : std::uint8_t { kSolid, kHatch, kDots, kCross };

/// A colour by what it stands for, or on the sequential scale.
struct Paint {
    Ink ink = Ink::kNone;
    double alpha = 1.0;
    std::optional<double> heat = std::nullopt;  ///< Range: 0 to 1.
};
[[nodiscard]] inline Paint heat_paint(double share) { return {Ink::kBackground, 1.0, share}; }

struct RectMark {
    Frame frame;
    Paint fill;
    Paint stroke = {};
    double stroke_width = 1.0;
    Pattern pattern = Pattern::kSolid;
    double radius = 0.0;
    bool is_dashed = false;
};

/// A band from a column on the left to one on the right, each end vertical.
struct RibbonMark {
    Frame from;  ///< Its right edge is where the band begins.
    Frame to;    ///< Its left edge is where the band ends.
    Paint fill;
    Pattern pattern = Pattern::kSolid;
};

struct LineMark {
    std::vector<Point> points;
    Paint stroke;
    double width = 1.0;
    bool is_dashed = false;
};

/// A filled shape.
struct AreaMark {
    std::vector<Point> points;
    Paint fill;
};

enum class Align : std::uint8_t { kLeft, kCentre, kRight };

/// One line of text in the middle of the frame's height; elided where it is too long.
struct TextMark {
    Frame frame;
    std::string text;
    Paint paint{Ink::kText};
    Align align = Align::kLeft;
    double size = 12.0;
    bool is_bold = false;
    std::optional<Paint> on = std::nullopt;  ///< The text is black or white, whichever reads better on this.
    bool is_upward = false;   ///< Turned by 90 degrees, read from below.
};

/// A grid of values on the sequential scale, row by row. A cell stands for a pair, or a port and group.
struct HeatMark {
    Frame frame;
    std::uint32_t rows = 0;
    std::uint32_t columns = 0;
    std::vector<float> shares;  ///< Range: 0 to 1; below 0: empty.
    Target::Kind kind = Target::Kind::kNone;
    Grouping level = Grouping::kRank;
};

using Mark = std::variant<RectMark, RibbonMark, LineMark, AreaMark, TextMark, HeatMark>;

/// Something that can be pointed at, walked to by keys, and read out.
struct Element {
    Target target;
    std::string name;  ///< "stage 3 to engine 0, 3.8 GB, NIC, 12 % of all".
    Frame frame;
    std::vector<std::size_t> marks;  ///< That show it; the frame where there are none.
};

/// A picture before it is painted: marks from back to front.
struct Scene {
    double width = 0.0;
    double height = 0.0;
    std::vector<Mark> marks;
    std::vector<Element> elements;
    std::string title;
    /// Where a time axis lies, if the view has one: from the window's start to its end.
    std::optional<Frame> time_area;
    double most_scroll = 0.0;  ///< Of rows that do not fit; 0: all fit.

    std::size_t add(Mark mark) {
        marks.push_back(std::move(mark));
        return marks.size() - 1;
    }
    void text(Frame frame, std::string what, Ink ink = Ink::kText, Align align = Align::kLeft, double size = 12.0, bool is_bold = false) {
        marks.emplace_back(TextMark{frame, std::move(what), {ink}, align, size, is_bold});
    }
    void line(Point from, Point to, Ink ink = Ink::kGrid, double thickness = 1.0) {
        marks.emplace_back(LineMark{{from, to}, {ink}, thickness});
    }

    /// The element whose marks lie topmost under the point.
    [[nodiscard]] std::optional<std::size_t> hit(Point point) const;
    /// What lies under the point: an element's target, or a cell of a grid.
    [[nodiscard]] Target target_at(Point point) const;
    /// The element of this target.
    [[nodiscard]] std::optional<std::size_t> find(const Target& target) const;
};

/// Top and bottom edge of a ribbon at x. Pre: x lies between its ends.
[[nodiscard]] std::pair<double, double> edges_at(const RibbonMark& ribbon, double x);
/// Whether the mark covers the point.
[[nodiscard]] bool covers(const Mark& mark, Point point);

}  // namespace refit::gui
