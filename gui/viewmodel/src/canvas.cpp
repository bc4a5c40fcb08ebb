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

void Canvas::header(const std::string& title, const std::string& line) {
    scene.title = title + " · " + answer.scenario.name;
    scene.text({body.x, body.y, body.width, 22.0}, title, Ink::kText, Align::kLeft, 17.0, true);
    const auto& cluster = answer.scenario.cluster;
    auto right = answer.scenario.model.title() + ", " + std::to_string(cluster.train_gpus()) + " x " + cluster.train_system().gpu + " to " +
                 std::to_string(cluster.generate_gpus()) + " x " + cluster.generate_system().gpu;
    if (state.filter.is_set()) {
        right = "filter  " + state.filter.text + "    " + right;
    }
    // In a narrow view the title keeps its room.
    const auto start = std::clamp(text_width(title, 17.0) * 1.05 + 12.0, body.width * 0.45, body.width);
    scene.text({body.x + start, body.y, body.width - start, 22.0}, right, Ink::kMuted, Align::kRight, 12.0);
    scene.text({body.x, body.y + 23.0, body.width, 18.0}, line, Ink::kMuted);
    body.y += 50.0;
    body.height -= 50.0;
}

double Canvas::key(const std::vector<KeyEntry>& entries, double x, double y) {
    for (const auto& entry : entries) {
        scene.add(RectMark{{x, y + 3.0, 16.0, 11.0}, entry.paint, {}, 1.0, entry.pattern, 2.0});
        const auto width = text_width(entry.text, 11.0) + 2.0;
        scene.text({x + 21.0, y, width, 17.0}, entry.text, Ink::kText, Align::kLeft, 11.0);
        x += 21.0 + width + 8.0;
    }
    return x;
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
    for (const auto tick : round_ticks(scale.window().from, scale.window().to, std::max<std::size_t>(3, static_cast<std::size_t>(area.width / 170.0)))) {
        const auto x = scale.x_of(tick);
        if (has_lines) {
            scene.line({x, area.y}, {x, area.bottom()});
        }
        scene.line({x, area.bottom()}, {x, area.bottom() + 5.0}, Ink::kOutline);
        const auto start = std::clamp(x - 40.0, area.x - 4.0, area.right() - 76.0);
        const auto align = x - 40.0 < area.x - 4.0 ? Align::kLeft : x + 40.0 > area.right() + 4.0 ? Align::kRight : Align::kCentre;
        scene.text({start, area.bottom() + 6.0, 80.0, 14.0}, time_text(tick), Ink::kMuted, align, 11.0);
    }
}

void Canvas::nothing(const std::string& what, const std::string& hint) {
    const auto middle = body.y + body.height / 2.0;
    scene.text({body.x, middle - 24.0, body.width, 22.0}, what, Ink::kText, Align::kCentre, 15.0, true);
    scene.text({body.x, middle + 2.0, body.width, 18.0}, hint, Ink::kMuted, Align::kCentre);
}

}  // namespace refit::gui
