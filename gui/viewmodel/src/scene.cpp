// SPDX-License-Identifier: Apache-2.0
#include "refit/gui/scene.hpp"

#include <algorithm>
#include <cmath>

namespace refit::gui {
namespace {

/// Height of a ribbon's edge between two heights: the cubic with control points halfway, solved for x.
double edge_at(double from, double to, double share) {
    // x(s) = 1.5 s (1-s)^2 + 1.5 s^2 (1-s) + s^3 is monotonic; some bisections find s.
    double low = 0.0;
    double high = 1.0;
    for (int i = 0; i < 24; ++i) {
        const auto s = (low + high) / 2.0;
        const auto x = 1.5 * s * (1.0 - s) * (1.0 - s) + 1.5 * s * s * (1.0 - s) + s * s * s;
        (x < share ? low : high) = s;
    }
    const auto s = (low + high) / 2.0;
    const auto weight = s * s * (3.0 - 2.0 * s);
    return from + (to - from) * weight;
}

struct Cover {
    Point point;

    bool operator()(const RectMark& mark) const { return mark.frame.contains(point); }
    bool operator()(const HeatMark& mark) const { return mark.frame.contains(point); }
    bool operator()(const RibbonMark& mark) const {
        if (point.x < mark.from.right() || point.x > mark.to.x) {
            return mark.from.contains(point) || mark.to.contains(point);
        }
        const auto [top, bottom] = edges_at(mark, point.x);
        return point.y >= top && point.y <= std::max(bottom, top + 2.0);
    }
    bool operator()(const LineMark& mark) const {
        for (std::size_t i = 1; i < mark.points.size(); ++i) {
            const auto& a = mark.points[i - 1];
            const auto& b = mark.points[i];
            const auto dx = b.x - a.x;
            const auto dy = b.y - a.y;
            const auto length = dx * dx + dy * dy;
            const auto at = length > 0.0 ? std::clamp(((point.x - a.x) * dx + (point.y - a.y) * dy) / length, 0.0, 1.0) : 0.0;
            if (std::hypot(point.x - a.x - at * dx, point.y - a.y - at * dy) <= mark.width / 2.0 + 3.0) {
                return true;
            }
        }
        return false;
    }
    bool operator()(const AreaMark&) const { return false; }
    bool operator()(const TextMark& mark) const { return mark.frame.contains(point); }
};

}  // namespace

std::pair<double, double> edges_at(const RibbonMark& ribbon, double x) {
    const auto start = ribbon.from.right();
    const auto span = ribbon.to.x - start;
    const auto share = span > 0.0 ? std::clamp((x - start) / span, 0.0, 1.0) : 0.0;
    return {edge_at(ribbon.from.y, ribbon.to.y, share), edge_at(ribbon.from.bottom(), ribbon.to.bottom(), share)};
}

bool covers(const Mark& mark, Point point) { return std::visit(Cover{point}, mark); }

std::optional<std::size_t> Scene::hit(Point point) const {
    std::optional<std::size_t> best;
    std::size_t best_mark = 0;
    for (std::size_t i = 0; i < elements.size(); ++i) {
        const auto& element = elements[i];
        if (element.marks.empty()) {
            if (!best && element.frame.contains(point)) {
                best = i;
            }
            continue;
        }
        for (const auto mark : element.marks) {
            if ((!best || mark >= best_mark) && covers(marks[mark], point)) {
                best = i;
                best_mark = mark;
            }
        }
    }
    return best;
}

Target Scene::target_at(Point point) const {
    if (const auto element = hit(point)) {
        return elements[*element].target;
    }
    for (auto mark = marks.rbegin(); mark != marks.rend(); ++mark) {
        const auto* heat = std::get_if<HeatMark>(&*mark);
        if (heat == nullptr || heat->kind == Target::Kind::kNone || !heat->frame.contains(point)) {
            continue;
        }
        const auto row = static_cast<std::uint32_t>((point.y - heat->frame.y) / heat->frame.height * heat->rows);
        const auto column = static_cast<std::uint32_t>((point.x - heat->frame.x) / heat->frame.width * heat->columns);
        return {heat->kind, heat->level, std::min(row, heat->rows - 1), std::min(column, heat->columns - 1)};
    }
    return {};
}

std::optional<std::size_t> Scene::find(const Target& target) const {
    const auto found = std::ranges::find(elements, target, &Element::target);
    return found == elements.end() ? std::nullopt : std::optional{static_cast<std::size_t>(found - elements.begin())};
}

}  // namespace refit::gui
