// SPDX-License-Identifier: Apache-2.0
#include "canvas.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "refit/quantity.hpp"

namespace refit::gui {

std::string number(const char* format, double value) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, format, value);
    return buffer;
}

std::string percent(double share) {
    const auto value = share * 100.0;
    return number(value >= 9.95 || value == 0.0 ? "%.0f %%" : value >= 0.095 ? "%.1f %%" : "%.2f %%", value);
}

std::string grouped(std::uint64_t value) {
    auto text = std::to_string(value);
    for (auto i = static_cast<std::ptrdiff_t>(text.size()) - 3; i > 0; i -= 3) {
        text.insert(static_cast<std::size_t>(i), ",");
    }
    return text;
}

std::string time_text(double seconds) {
    if (seconds == 0.0) {
        return "0";
    }
    const auto size = std::abs(seconds);
    return size >= 0.9995 ? number("%.4g s", seconds) : size >= 0.9995e-3 ? number("%.4g ms", seconds * 1e3) : number("%.4g us", seconds * 1e6);
}

std::string size_text(double bytes) {
    auto value = bytes;
    for (const char* unit : {"B", "kB", "MB", "GB", "TB"}) {
        if (value < 999.5) {
            return number(unit[0] == 'B' || value >= 99.95 ? "%.0f " : value >= 9.995 ? "%.1f " : "%.2f ", value) + unit;
        }
        value /= 1000.0;
    }
    return number("%.3g PB", value);
}

double text_width(const std::string& text, double size) {
    const auto letters = std::ranges::count_if(text, [](unsigned char c) { return (c & 0xc0U) != 0x80U; });
    return 0.6 * size * static_cast<double>(letters);
}

std::string longest(const std::vector<std::string>& texts, double room, double size) {
    const auto found = std::ranges::find_if(texts, [&](const std::string& text) { return text_width(text, size) <= room; });
    return found == texts.end() ? texts.back() : *found;
}

std::vector<std::string> wrapped(const std::string& text, double room, double size, std::size_t most) {
    std::vector<std::string> lines{{}};
    for (std::size_t at = 0; at < text.size();) {
        const auto next = std::min(text.find(' ', at), text.size());
        const auto word = text.substr(at, next - at);
        if (!lines.back().empty() && lines.size() < most && text_width(lines.back() + " " + word, size) > room) {
            lines.emplace_back();
        }
        lines.back() += (lines.back().empty() ? "" : " ") + word;
        at = next + 1;
    }
    return lines;
}

std::string headline_of(const Shown& shown) {
    auto text = title_of(shown.report.method) + ", ";
    if (shown.is_refused()) {
        return text + "cannot run";
    }
    text += format_seconds(shown.seconds()) + (shown.report.simulated ? " simulated" : " by the closed form");
    return shown.report.is_calibrated ? text : text + ", uncalibrated";
}

std::string bytes_text(const PairFlow& flow) {
    if (flow.nic > 0 && flow.nvlink > 0) {
        return size_text(static_cast<double>(flow.nic)) + " on NICs, " + size_text(static_cast<double>(flow.nvlink)) + " on NVLink";
    }
    return size_text(static_cast<double>(flow.bytes())) + (flow.nic > 0 ? " on NICs" : " on NVLink");
}

Canvas::Canvas(const Answer& shown, const ViewState& how, double width, double height) : answer{shown}, state{how} {
    scene.width = width;
    scene.height = height;
    body = {16.0, 12.0, width - 32.0, height - 24.0};
    if (state.has_footer) {
        body.height -= 18.0;
        const Frame frame{16.0, height - 24.0, width - 32.0, 16.0};
        scene.text(frame, "Refit " REFIT_VERSION " · " + answer.scenario.name + " · kB, MB, GB, TB are powers of 1000 bytes", Ink::kMuted, Align::kLeft, 10.5);
        scene.text(frame, command_of(answer.question), Ink::kMuted, Align::kRight, 10.5);
    }
}

double Canvas::paragraph(const Frame& frame, const std::string& text, Ink ink, double size) {
    const auto line_height = size + 4.0;
    const auto lines = wrapped(text, frame.width, size, static_cast<std::size_t>(std::max(1.0, frame.height / line_height)));
    double y = frame.y;
    for (const auto& line : lines) {
        scene.text({frame.x, y, frame.width, line_height + 1.0}, line, ink, Align::kLeft, size);
        y += line_height;
    }
    return y - frame.y;
}

void Canvas::header(const std::string& title, const std::string& line) {
    scene.title = title + " · " + answer.scenario.name;
    const bool is_narrow = body.width < kNarrow;
    // What a narrow view has no room for is left out, rather than cut.
    const auto shown = longest({title, title.substr(0, title.find(','))}, body.width, is_narrow ? 15.0 : 17.0);
    scene.text({body.x, body.y, body.width, 22.0}, shown, Ink::kText, Align::kLeft, is_narrow ? 14.0 : 17.0, true);
    const auto& cluster = answer.scenario.cluster;
    auto right = answer.scenario.model.title() + ", " + std::to_string(cluster.train_gpus()) + " x " + cluster.train_system().gpu + " to " +
                 std::to_string(cluster.generate_gpus()) + " x " + cluster.generate_system().gpu;
    const auto start = std::clamp(text_width(shown, 17.0) * 1.05 + 12.0, body.width * 0.45, body.width);
    const auto room = body.width - start;
    if (state.filter.is_set()) {
        right = "filter  " + state.filter.text + "    " + right;
    } else if (is_narrow) {
        right = longest({right, answer.scenario.model.title(), ""}, room, 12.0);
    }
    scene.text({body.x + start, body.y, room, 22.0}, right, Ink::kMuted, Align::kRight, 12.0);
    const auto height = paragraph({body.x, body.y + 24.0, body.width, is_narrow ? 32.0 : 16.0}, line);
    body.y += 34.0 + height;
    body.height -= 34.0 + height;
}

namespace {

constexpr double kKeyRow = 19.0;

double key_width(const Canvas::KeyEntry& entry) { return 21.0 + text_width(entry.text, 11.0) + 2.0; }

/// By entry: where it begins, in rows of a width.
std::vector<Point> key_places(const std::vector<Canvas::KeyEntry>& entries, double width) {
    std::vector<Point> places;
    Point next;
    for (const auto& entry : entries) {
        if (next.x > 0.0 && next.x + key_width(entry) > width) {
            next = {0.0, next.y + kKeyRow};
        }
        places.push_back(next);
        next.x += key_width(entry) + 8.0;
    }
    return places;
}

}  // namespace

double Canvas::key(const std::vector<KeyEntry>& entries, double x, double y) {
    for (const auto& entry : entries) {
        scene.add(RectMark{{x, y + 3.0, 16.0, 11.0}, entry.paint, {}, 1.0, entry.pattern, 2.0});
        scene.text({x + 21.0, y, key_width(entry) - 21.0, 17.0}, entry.text, Ink::kText, Align::kLeft, 11.0);
        x += key_width(entry) + 8.0;
    }
    return x;
}

void Canvas::key_rows(const std::vector<KeyEntry>& entries, double x, double y, double width) {
    const auto places = key_places(entries, width);
    for (std::size_t i = 0; i < entries.size(); ++i) {
        key({entries[i]}, x + places[i].x, y + places[i].y);
    }
}

double Canvas::key_height(const std::vector<KeyEntry>& entries, double width) {
    return entries.empty() ? 0.0 : key_places(entries, width).back().y + kKeyRow;
}

double Canvas::scale(const std::string& low, const std::string& high, double x, double y) {
    const auto low_width = text_width(low, 11.5) + 6.0;
    scene.text({x, y, low_width, 17.0}, low, Ink::kMuted, Align::kLeft, 11.5);
    HeatMark heat{{x + low_width, y + 3.0, 120.0, 11.0}, 1, 60, {}};
    for (int i = 0; i < 60; ++i) {
        heat.shares.push_back(static_cast<float>(i) / 59.0F);
    }
    scene.add(std::move(heat));
    const auto high_width = text_width(high, 11.5) + 6.0;
    scene.text({x + low_width + 126.0, y, high_width, 17.0}, high, Ink::kMuted, Align::kLeft, 11.5);
    return x + low_width + 126.0 + high_width + 16.0;
}

void Canvas::element(const Target& target, std::string name, const Frame& frame, std::vector<std::size_t> marks) {
    scene.elements.push_back({target, std::move(name), frame, std::move(marks)});
}

void Canvas::time_axis(const TimeScale& scale, const Frame& area, bool has_lines) {
    scene.time_area = area;
    scene.line({area.x, area.bottom()}, {area.right(), area.bottom()}, Ink::kOutline);
    double labelled = area.x - 100.0;  // Where the last label ends.
    for (const auto tick : round_ticks(scale.window().from, scale.window().to, std::max<std::size_t>(3, static_cast<std::size_t>(area.width / 170.0)))) {
        const auto x = scale.x_of(tick);
        if (has_lines) {
            scene.line({x, area.y}, {x, area.bottom()});
        }
        scene.line({x, area.bottom()}, {x, area.bottom() + 5.0}, Ink::kOutline);
        const auto start = std::clamp(x - 40.0, area.x - 4.0, area.right() - 76.0);
        const auto align = x - 40.0 < area.x - 4.0 ? Align::kLeft : x + 40.0 > area.right() + 4.0 ? Align::kRight : Align::kCentre;
        const auto text = time_text(tick);
        const auto width = text_width(text, 11.0);
        const auto left = align == Align::kLeft ? start : align == Align::kRight ? start + 80.0 - width : start + 40.0 - width / 2.0;
        if (left >= labelled + 3.0) {
            scene.text({start, area.bottom() + 6.0, 80.0, 14.0}, text, Ink::kMuted, align, 11.0);
            labelled = left + width;
        }
    }
}

void Canvas::nothing(const std::string& what, const std::string& hint) {
    const auto middle = body.y + body.height / 2.0;
    scene.text({body.x, middle - 24.0, body.width, 22.0}, what, Ink::kText, Align::kCentre, 15.0, true);
    scene.text({body.x, middle + 2.0, body.width, 18.0}, hint, Ink::kMuted, Align::kCentre);
}

std::string share_text(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? "0 %" : percent(static_cast<double>(part) / static_cast<double>(whole));
}

std::vector<std::uint8_t> flow_mask_of(const Answer& answer, const ViewState& state) {
    return state.filter.is_set() ? flow_mask(state.filter, *answer.a.flows, answer.workload, answer.groups) : std::vector<std::uint8_t>{};
}

std::string flows_line(const Answer& answer, const ViewState& state, const PairFlow& total) {
    auto text = "by " + std::string{title_of(grouping_of(answer, state))} + "; " + bytes_text(total);
    if (state.direction != Direction::kAll) {
        text += ", " + std::string{title_of(state.direction)};
    }
    return text + "; " + headline_of(answer.a);
}

Scene no_flow_fits(Canvas canvas, const std::string& title) {
    canvas.header(title, headline_of(canvas.answer.a));
    canvas.nothing("No flow fits the filter", "Esc clears it");
    return std::move(canvas.scene);
}

}  // namespace refit::gui
