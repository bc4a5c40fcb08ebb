// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "canvas.hpp"
#include "refit/quantity.hpp"

namespace refit::gui {
namespace {

constexpr double kWidestName = 176.0;
constexpr double kShare = 56.0;

/// GPUs, NVLink, NICs and the network between, each as wide as it is fast and as hot as it is busy.
class Topology {
public:
    Topology(Canvas& canvas, std::vector<PortRow> sides) : canvas_{canvas}, sides_{std::move(sides)} {}

    void draw(const Frame& frame) {
        const auto box = std::clamp(frame.width * 0.2, std::min(118.0, frame.width * 0.28), 210.0);
        const auto network = std::min(120.0, frame.width * 0.15);
        const Frame left{frame.x, frame.y, box, frame.height};
        const Frame right{frame.right() - box, frame.y, box, frame.height};
        const Frame middle{frame.centre().x - network / 2.0, frame.y + frame.height * 0.2, network, frame.height * 0.6};
        side(left, true);
        side(right, false);
        canvas_.scene.add(RectMark{middle, {Ink::kPanel}, {Ink::kOutline}, 1.0, Pattern::kSolid, 8.0});
        canvas_.scene.text(middle, "network", Ink::kText, Align::kCentre, network < 64.0 ? 10.0 : 12.0);
        wire(0, Port::kNicOut, left.right(), middle.x, frame.y + frame.height * 0.40);
        wire(0, Port::kNicIn, left.right(), middle.x, frame.y + frame.height * 0.72);
        wire(1, Port::kNicIn, middle.right(), right.x, frame.y + frame.height * 0.40);
        wire(1, Port::kNicOut, middle.right(), right.x, frame.y + frame.height * 0.72);
    }

private:
    [[nodiscard]] const PortRow* find(std::uint32_t group, Port port) const {
        const auto found = std::ranges::find_if(sides_, [&](const PortRow& row) { return row.group == group && row.port == port; });
        return found == sides_.end() ? nullptr : &*found;
    }

    void wire(std::uint32_t group, Port port, double from, double to, double y) {
        const auto* row = find(group, port);
        const auto share = row == nullptr ? 0.0 : row->share;
        const auto& cluster = canvas_.answer.scenario.cluster;
        const auto& system = group == 0 ? cluster.train_system() : cluster.generate_system();
        const auto width = std::clamp(std::sqrt(system.nic_per_gpu().bytes_per_second() * 1e-9) * 1.3, 4.0, 20.0);
        const auto mark = canvas_.scene.add(RectMark{{from + 1.0, y - width / 2.0, to - from - 2.0, width}, heat_paint(share), {Ink::kOutline, 0.6}});
        const bool is_out = port == Port::kNicOut;
        const auto arrow = is_out == (group == 0) ? " →" : " ←";
        const auto name = (is_out ? "NIC out" : "NIC in") + std::string{arrow};
        canvas_.scene.text({from + 2.0, y - width / 2.0 - 17.0, to - from - 4.0, 15.0},
                           longest({name + "  " + format_bandwidth(system.nic_per_gpu()) + " a GPU, busy " + percent(share), name + "  busy " + percent(share), (is_out ? "out " : "in ") + percent(share), percent(share)}, to - from - 4.0),
                           Ink::kText, Align::kCentre, 11.0);
        canvas_.element({Target::Kind::kPort, Grouping::kSide, static_cast<std::uint32_t>(port), group},
                        std::string{refit::name_of(port)} + " of " + canvas_.answer.by(Grouping::kSide).name(group) + ", " + percent(share) + " of what it could carry",
                        {from, y - 12.0, to - from, 24.0}, {mark});
    }

    void side(const Frame& frame, bool is_train) {
        const auto& cluster = canvas_.answer.scenario.cluster;
        const auto& system = is_train ? cluster.train_system() : cluster.generate_system();
        const auto group = is_train ? 0U : 1U;
        const auto& domains = canvas_.answer.by(Grouping::kDomain);
        const auto count = is_train ? domains.train_count() : domains.count() - domains.train_count();
        const std::string who = is_train ? "trainers" : "generators";
        const auto title = longest({std::to_string(is_train ? cluster.train_gpus() : cluster.generate_gpus()) + " " + who, who}, frame.width - 20.0, 13.5);
        canvas_.scene.add(RectMark{frame, {Ink::kPanel}, {is_train ? Ink::kTrain : Ink::kGenerate}, 2.0, Pattern::kSolid, 6.0});
        canvas_.scene.text({frame.x + 10.0, frame.y + 6.0, frame.width - 20.0, 16.0}, title, Ink::kText, Align::kLeft, 12.5, true);
        const auto domains_text = std::to_string(count) + (count == 1 ? " domain" : " domains");
        canvas_.scene.text({frame.x + 10.0, frame.y + 23.0, frame.width - 20.0, 15.0}, longest({system.title + ", " + domains_text, domains_text}, frame.width - 20.0), Ink::kMuted, Align::kLeft, 11.0);
        const auto* out = find(group, Port::kNvlinkOut);
        const auto share = out == nullptr ? 0.0 : out->share;
        const auto width = std::clamp(std::sqrt(system.nvlink.value.bytes_per_second() * 1e-9) * 0.8, 6.0, 26.0);
        const Frame bus{frame.x + 10.0, frame.bottom() - 14.0 - width, frame.width - 20.0, width};
        const auto mark = canvas_.scene.add(RectMark{bus, heat_paint(share), {Ink::kOutline, 0.6}, 1.0, Pattern::kSolid, 3.0});
        canvas_.scene.text({bus.x, bus.y - 17.0, bus.width, 15.0}, longest({"NVLink " + format_bandwidth(system.nvlink.value) + ", busy " + percent(share), "NVLink " + percent(share)}, bus.width), Ink::kText, Align::kLeft, 11.0);
        canvas_.element({Target::Kind::kPort, Grouping::kSide, static_cast<std::uint32_t>(Port::kNvlinkOut), group}, "NVLink of " + canvas_.answer.by(Grouping::kSide).name(group) + ", " + percent(share) + " of what it could carry", bus, {mark});
    }

    Canvas& canvas_;
    std::vector<PortRow> sides_;
};

/// Rows of one kind of port, by group, over time.
class PortSection {
public:
    /// `name`: width of names.
    PortSection(Canvas& canvas, const Groups& groups, const TimeScale& scale, double name) : canvas_{canvas}, groups_{groups}, scale_{scale}, name_{name} {}

    void draw(std::span<const PortRow> rows, const Frame& area, double row_height) {
        const auto& course = canvas_.answer.a.course;
        const auto columns = static_cast<std::uint32_t>(std::clamp(area.width, 100.0, 1200.0));
        HeatMark heat{{area.x, area.y, area.width, row_height * static_cast<double>(rows.size())}, static_cast<std::uint32_t>(rows.size()), columns, {}};
        for (const auto& row : rows) {
            for (std::uint32_t column = 0; column < columns; ++column) {
                const auto time = scale_.time_at(area.x + (column + 0.5) / columns * area.width);
                const auto bin = static_cast<std::size_t>(std::max(0.0, time / course.seconds()) * static_cast<double>(course.bins));
                heat.shares.push_back(row.shares[std::min(course.bins - 1, bin)]);
            }
        }
        const std::string title{refit::name_of(rows.front().port)};
        const bool is_high = heat.frame.height >= text_width(title, 12.0);
        section_title(title, heat.frame, is_high);
        canvas_.scene.add(heat);
        double last = -100.0;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const Frame row{area.x, area.y + static_cast<double>(i) * row_height, area.width, row_height};
            const auto middle = row.centre().y;
            if (middle >= last + 12.5) {
                last = middle;
                canvas_.scene.text({canvas_.body.x + (is_high ? 20.0 : 52.0), middle - 8.0, name_ - (is_high ? 30.0 : 62.0), 16.0}, groups_.name(rows[i].group), Ink::kText, Align::kRight, 11.0);
                canvas_.scene.text({area.right() + 4.0, middle - 8.0, kShare - 4.0, 16.0}, percent(rows[i].share), Ink::kMuted, Align::kRight, 11.0);
            }
            const Target target{Target::Kind::kPort, groups_.grouping(), static_cast<std::uint32_t>(rows[i].port), rows[i].group};
            if (canvas_.state.selection == target) {
                canvas_.scene.add(RectMark{row, {}, {Ink::kAccent}, 2.0});
            }
            canvas_.element(target, title + ", " + groups_.name(rows[i].group) + ", " + percent(rows[i].share) + " of what it could carry", row);
        }
    }

private:
    /// Upwards, or in words below each other where the rows are too few for that.
    void section_title(const std::string& title, const Frame& rows, bool is_high) {
        const auto x = canvas_.body.x;
        if (is_high) {
            canvas_.scene.add(TextMark{{x, rows.y, 18.0, rows.height}, title, {Ink::kText}, Align::kCentre, 12.0, true, std::nullopt, true});
            return;
        }
        const auto space = title.find(' ');
        const auto y = rows.y + std::max(0.0, rows.height / 2.0 - 15.0);
        canvas_.scene.text({x, y, 52.0, 15.0}, title.substr(0, space), Ink::kText, Align::kLeft, 11.0, true);
        canvas_.scene.text({x, y + 14.0, 52.0, 15.0}, space == std::string::npos ? "" : title.substr(space + 1), Ink::kText, Align::kLeft, 11.0, true);
    }

    Canvas& canvas_;
    const Groups& groups_;
    const TimeScale& scale_;
    double name_;
};

}  // namespace

Scene links_view(Canvas canvas) {
    const auto& answer = canvas.answer;
    const auto& course = answer.a.course;
    const auto grouping = canvas.state.grouping.value_or(finest(answer.groups, 26));
    const auto& groups = answer.by(grouping);
    canvas.header("When each link is busy", "a row: the ports of a " + std::string{title_of(grouping)} + ", the mean over its GPUs; " + headline_of(answer.a));
    if (!course.run || course.ports.empty()) {
        canvas.nothing("Not simulated yet", "the closed form has no course: it comes with the simulation");
        return std::move(canvas.scene);
    }
    auto& body = canvas.body;
    canvas.scale("idle", "full rate", body.x, body.y);
    const auto top = std::clamp(body.height * 0.22, 96.0, 130.0);
    Topology{canvas, port_rows(course, answer.by(Grouping::kSide))}.draw({body.x, body.y + 26.0, body.width, top});
    const auto name = std::clamp(body.width * 0.25, 130.0, kWidestName);
    const Frame area{body.x + name, body.y + top + 46.0, body.width - name - kShare, body.height - top - 46.0 - 26.0};
    const TimeScale scale{canvas.state.window.value_or(TimeWindow{0.0, course.seconds()}), area.x, area.width};
    auto rows = port_rows(course, groups);
    std::erase_if(rows, [](const PortRow& row) { return row.share < 1e-4; });
    canvas.scene.text({area.right() + 4.0, area.y - 18.0, kShare - 4.0, 15.0}, "busy", Ink::kMuted, Align::kRight, 11.0);
    constexpr double kGap = 12.0;
    const auto row_height = std::clamp((area.height - 3.0 * kGap) / static_cast<double>(std::max<std::size_t>(1, rows.size())), 1.0, 34.0);
    auto y = area.y;
    PortSection section{canvas, groups, scale, name};
    for (std::size_t first = 0; first < rows.size();) {
        auto last = first;
        while (last < rows.size() && rows[last].port == rows[first].port) {
            ++last;
        }
        section.draw(std::span{rows}.subspan(first, last - first), {area.x, y, area.width, 0.0}, row_height);
        y += row_height * static_cast<double>(last - first) + kGap;
        first = last;
    }
    const Frame all{area.x, area.y, area.width, y - kGap - area.y};
    canvas.time_axis(scale, all, false);
    if (canvas.state.now) {
        const auto x = scale.x_of(*canvas.state.now);
        if (x >= all.x && x <= all.right()) {
            canvas.scene.line({x, all.y}, {x, all.bottom()}, Ink::kAccent, 2.0);
        }
    }
    return std::move(canvas.scene);
}

}  // namespace refit::gui
