// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "canvas.hpp"
#include "refit/quantity.hpp"

namespace refit::gui {
namespace {

constexpr double kName = 196.0;
constexpr double kShare = 56.0;

TimeWindow window_of(const Canvas& canvas) {
    return canvas.state.window.value_or(TimeWindow{0.0, std::max(1e-9, canvas.answer.a.course.seconds())});
}

Paint paint_of(Activity activity) {
    constexpr std::array kShades{1.0, 0.72, 0.5, 0.38};
    return {ink_of(activity), kShades[shade_of(activity)]};
}

Pattern pattern_of(Activity activity) {
    constexpr std::array kPatterns{Pattern::kSolid, Pattern::kHatch, Pattern::kDots, Pattern::kCross};
    return kPatterns[shade_of(activity)];
}

/// A profile of shares over time as an area above the row's floor.
void add_profile(Scene& scene, const std::vector<float>& shares, double end, const TimeScale& scale, const Frame& row, Ink ink) {
    AreaMark area{{}, {ink, 0.8}};
    area.points.push_back({row.x, row.bottom()});
    const auto bins = shares.size();
    for (std::size_t bin = 0; bin < bins; ++bin) {
        const auto from = std::clamp(scale.x_of(end * static_cast<double>(bin) / static_cast<double>(bins)), row.x, row.right());
        const auto to = std::clamp(scale.x_of(end * static_cast<double>(bin + 1) / static_cast<double>(bins)), row.x, row.right());
        if (to > from) {
            const auto y = row.bottom() - row.height * static_cast<double>(shares[bin]);
            area.points.push_back({from, y});
            area.points.push_back({to, y});
        }
    }
    area.points.push_back({row.right(), row.bottom()});
    scene.add(std::move(area));
}

class TimelinePicture {
public:
    explicit TimelinePicture(Canvas& canvas)
        : canvas_{canvas}, course_{canvas.answer.a.course}, area_{canvas.body.x + kName, canvas.body.y + 28.0, canvas.body.width - kName - kShare, canvas.body.height - 28.0 - 26.0},
          scale_{window_of(canvas), area_.x, area_.width} {}

    void draw() {
        auto& scene = canvas_.scene;
        pick_rows();
        canvas_.time_axis(scale_, area_);
        scene.text({area_.right() + 4.0, canvas_.body.y + 8.0, kShare - 4.0, 16.0}, "busy", Ink::kMuted, Align::kRight, 11.0);
        auto y = area_.y + 2.0;
        critical_row({area_.x, y, area_.width, critical_height_});
        y += critical_height_ + 10.0;
        for (const auto* lane : lanes_) {
            lane_row(*lane, {area_.x, y, area_.width, row_height_ - 3.0});
            y += row_height_;
        }
        if (hidden_lanes_ > 0) {
            scene.text({canvas_.body.x, y, kName - 10.0, 14.0}, grouped(hidden_lanes_) + " more lanes: scroll", Ink::kMuted, Align::kRight, 11.0);
            y += 16.0;
        }
        port_section(y + 8.0);
        marker();
        key();
    }

private:
    void pick_rows() {
        critical_height_ = std::clamp(area_.height * 0.075, 26.0, 44.0);
        std::vector<const CourseLane*> all;
        for (const auto& lane : course_.lanes) {
            if (matches_words(canvas_.state.filter, lane.name)) {
                all.push_back(&lane);
            }
        }
        const auto room = area_.height - critical_height_ - 10.0 - port_height() - 30.0;
        row_height_ = std::clamp(room / static_cast<double>(std::max<std::size_t>(1, all.size())), 15.0, 40.0);
        const auto fits = std::max<std::size_t>(1, static_cast<std::size_t>(room / row_height_));
        const auto first = std::min(static_cast<std::size_t>(canvas_.state.scroll / row_height_), all.size() > fits ? all.size() - fits : 0);
        for (auto i = first; i < std::min(all.size(), first + fits); ++i) {
            lanes_.push_back(all[i]);
        }
        hidden_lanes_ = all.size() - lanes_.size();
    }

    [[nodiscard]] double port_height() const { return std::clamp(area_.height * 0.34, 96.0, 260.0); }

    void row_name(const std::string& name, const std::string& share, const Frame& row, bool is_bold = false) {
        canvas_.scene.text({canvas_.body.x, row.y, kName - 10.0, row.height}, name, Ink::kText, Align::kRight, row.height < 14.0 ? 10.5 : 11.5, is_bold);
        canvas_.scene.text({area_.right() + 4.0, row.y, kShare - 4.0, row.height}, share, Ink::kMuted, Align::kRight, 11.0);
    }

    /// What kept all that follows waiting: it tiles the time.
    void critical_row(const Frame& row) {
        row_name("what takes the time", "", row, true);
        const auto& run = *course_.run;
        std::vector<std::pair<TimeWindow, std::uint32_t>> parts;
        for (const auto& step : run.path) {
            const auto activity = run.graph.tasks[step.task].activity;
            if (!parts.empty() && run.graph.tasks[parts.back().second].activity == activity && step.from <= parts.back().first.to + 1e-12) {
                parts.back().first.to = step.to;
            } else {
                parts.push_back({{step.from, step.to}, step.task});
            }
        }
        for (const auto& [window, task] : parts) {
            const auto activity = run.graph.tasks[task].activity;
            const auto from = std::max(row.x, scale_.x_of(window.from));
            const auto to = std::min(row.right(), scale_.x_of(window.to));
            if (to <= from) {
                continue;
            }
            used_.insert(activity);
            const Frame frame{from, row.y, std::max(0.75, to - from), row.height};
            const auto mark = canvas_.scene.add(RectMark{frame, paint_of(activity), {}, 1.0, frame.width > 6.0 ? pattern_of(activity) : Pattern::kSolid});
            const std::string name{refit::name_of(activity)};
            if (frame.width > text_width(name, 11.0)) {
                canvas_.scene.add(TextMark{frame, frame.width > text_width(name, 11.0) + 60.0 ? name + "  " + format_seconds(Seconds{window.length()}) : name, {Ink::kText}, Align::kCentre, 11.5, false, paint_of(activity)});
            }
            if (frame.width >= 2.0) {
                canvas_.element({Target::Kind::kTask, Grouping::kRank, task, 0}, "critical path: " + name + " for " + format_seconds(Seconds{window.length()}) + " from " + time_text(window.from), frame, {mark});
            }
        }
        canvas_.scene.add(RectMark{row, {}, {Ink::kCritical}, 1.5});
    }

    void lane_row(const CourseLane& lane, const Frame& row) {
        row_name(lane.name, percent(lane.busy_seconds / course_.seconds()), row);
        canvas_.scene.add(RectMark{row, {Ink::kPanel}});
        const auto least = scale_.window().length() / row.width;
        double last = -1.0;
        const bool is_selected = canvas_.state.selection == Target{Target::Kind::kLane, Grouping::kRank, lane.lane, 0};
        for (const auto& slot : slots_of(course_, lane, scale_.window(), least)) {
            const auto from = std::max(row.x, scale_.x_of(slot.from));
            const auto to = std::min(row.right(), scale_.x_of(slot.to));
            if (last >= 0.0 && from - last > 14.0) {
                wait({last + 1.0, row.y + row.height * 0.36, from - last - 2.0, row.height * 0.28});
            }
            last = to;
            slot_mark(slot, {from, row.y, std::max(1.0, to - from), row.height});
        }
        if (is_selected) {
            canvas_.scene.add(RectMark{row, {}, {Ink::kAccent}, 2.0});
        }
        canvas_.element({Target::Kind::kLane, Grouping::kRank, lane.lane, 0},
                        lane.name + ", busy " + format_seconds(Seconds{lane.busy_seconds}) + ", " + percent(lane.busy_seconds / course_.seconds()) + " of the time, " + grouped(lane.tasks.size()) + " tasks",
                        {canvas_.body.x, row.y, kName - 4.0, row.height});
    }

    void wait(const Frame& frame) {
        has_waits_ = true;
        canvas_.scene.add(RectMark{frame, {Ink::kMuted, 0.5}, {}, 1.0, Pattern::kHatch});
    }

    void slot_mark(const LaneSlot& slot, const Frame& row) {
        used_.insert(slot.activity);
        auto paint = paint_of(slot.activity);
        // Several tasks in a pixel: the height says how much of the time they took.
        const auto height = slot.tasks > 1 ? std::max(2.0, row.height * slot.busy_share) : row.height;
        const Frame frame{row.x, row.bottom() - height, row.width, height};
        const auto pattern = frame.width > 8.0 ? pattern_of(slot.activity) : Pattern::kSolid;
        const auto mark = canvas_.scene.add(RectMark{frame, paint, {}, 1.0, pattern, frame.width > 6.0 ? 1.5 : 0.0});
        const std::string name{refit::name_of(slot.activity)};
        if (slot.tasks == 1 && frame.height >= 13.0 && frame.width > text_width(name, 10.5) + 4.0) {
            canvas_.scene.add(TextMark{frame, name, {Ink::kText}, Align::kCentre, 10.5, false, paint});
        }
        if (canvas_.state.selection == Target{Target::Kind::kTask, Grouping::kRank, slot.task, 0}) {
            canvas_.scene.add(RectMark{frame.inset(-1.5), {}, {Ink::kAccent}, 3.0});
        }
        if (frame.width >= 3.0 && canvas_.scene.elements.size() < 1500) {
            canvas_.element({Target::Kind::kTask, Grouping::kRank, slot.task, 0},
                            (slot.tasks > 1 ? grouped(slot.tasks) + " tasks, mostly " + name : name) + ", " + time_text(slot.from) + " to " + time_text(slot.to), frame, {mark});
        }
    }

    void port_section(double y) {
        const auto rows = port_rows(course_, canvas_.answer.by(Grouping::kSide));
        if (rows.empty()) {
            return;
        }
        canvas_.scene.text({canvas_.body.x, y, kName - 10.0, 15.0}, "links, rate of capacity", Ink::kText, Align::kRight, 11.5, true);
        y += 18.0;
        const auto height = std::min(34.0, (area_.bottom() - y - 2.0) / static_cast<double>(rows.size()));
        for (const auto& port : rows) {
            const Frame row{area_.x, y, area_.width, height - 4.0};
            const bool is_nic = port.port == Port::kNicOut || port.port == Port::kNicIn;
            const auto name = std::string{refit::name_of(port.port)} + ", " + canvas_.answer.by(Grouping::kSide).name(port.group);
            canvas_.scene.add(RectMark{row, {Ink::kPanel}});
            add_profile(canvas_.scene, port.shares, course_.seconds(), scale_, row, is_nic ? Ink::kNic : Ink::kNvlink);
            row_name(name, percent(port.share), row);
            canvas_.element({Target::Kind::kPort, Grouping::kSide, static_cast<std::uint32_t>(port.port), port.group}, name + ", " + percent(port.share) + " of what it could carry", row);
            y += height;
        }
    }

    void marker() {
        if (canvas_.state.now) {
            const auto x = scale_.x_of(*canvas_.state.now);
            if (x >= area_.x && x <= area_.right()) {
                canvas_.scene.line({x, area_.y}, {x, area_.bottom()}, Ink::kAccent, 2.0);
            }
        }
    }

    void key() {
        std::vector<Canvas::KeyEntry> entries;
        for (const auto activity : used_) {
            entries.push_back({std::string{refit::name_of(activity)}, paint_of(activity), pattern_of(activity)});
        }
        if (has_waits_) {
            entries.push_back({"waits", {Ink::kMuted, 0.5}, Pattern::kHatch});
        }
        canvas_.key(entries, canvas_.body.x, canvas_.body.y);
    }

    Canvas& canvas_;
    const Course& course_;
    Frame area_;
    TimeScale scale_;
    std::vector<const CourseLane*> lanes_;
    std::set<Activity> used_;
    std::size_t hidden_lanes_ = 0;
    double row_height_ = 20.0;
    double critical_height_ = 30.0;
    bool has_waits_ = false;
};

/// GPUs, NVLink, NICs and the network between, each as wide as it is fast and as hot as it is busy.
class Topology {
public:
    Topology(Canvas& canvas, const std::vector<PortRow>& sides) : canvas_{canvas}, sides_{sides} {}

    void draw(const Frame& frame) {
        const auto box = std::min(210.0, frame.width * 0.2);
        const Frame left{frame.x, frame.y, box, frame.height};
        const Frame right{frame.right() - box, frame.y, box, frame.height};
        const Frame middle{frame.centre().x - 60.0, frame.y + frame.height * 0.2, 120.0, frame.height * 0.6};
        side(left, true);
        side(right, false);
        canvas_.scene.add(RectMark{middle, {Ink::kPanel}, {Ink::kOutline}, 1.0, Pattern::kSolid, 8.0});
        canvas_.scene.text(middle, "network", Ink::kText, Align::kCentre, 12.0);
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
        canvas_.scene.text({from + 6.0, y - width / 2.0 - 17.0, to - from - 12.0, 15.0},
                           (group == 0 ? (is_out ? "NIC out" : "NIC in") : (is_out ? "NIC out" : "NIC in")) + std::string{arrow} + "  " + format_bandwidth(system.nic_per_gpu()) + " a GPU, busy " + percent(share),
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
        canvas_.scene.add(RectMark{frame, {Ink::kPanel}, {is_train ? Ink::kTrain : Ink::kGenerate}, 2.0, Pattern::kSolid, 6.0});
        canvas_.scene.text({frame.x + 10.0, frame.y + 6.0, frame.width - 20.0, 16.0}, (is_train ? std::to_string(cluster.train_gpus()) : std::to_string(cluster.generate_gpus())) + (is_train ? " trainers" : " generators"), Ink::kText, Align::kLeft, 12.5, true);
        canvas_.scene.text({frame.x + 10.0, frame.y + 23.0, frame.width - 20.0, 15.0}, system.title + ", " + std::to_string(count) + (count == 1 ? " domain" : " domains"), Ink::kMuted, Align::kLeft, 11.0);
        const auto* out = find(group, Port::kNvlinkOut);
        const auto share = out == nullptr ? 0.0 : out->share;
        const auto width = std::clamp(std::sqrt(system.nvlink.value.bytes_per_second() * 1e-9) * 0.8, 6.0, 26.0);
        const Frame bus{frame.x + 10.0, frame.bottom() - 14.0 - width, frame.width - 20.0, width};
        const auto mark = canvas_.scene.add(RectMark{bus, heat_paint(share), {Ink::kOutline, 0.6}, 1.0, Pattern::kSolid, 3.0});
        canvas_.scene.text({bus.x, bus.y - 17.0, bus.width, 15.0}, "NVLink " + format_bandwidth(system.nvlink.value) + ", busy " + percent(share), Ink::kText, Align::kLeft, 11.0);
        canvas_.element({Target::Kind::kPort, Grouping::kSide, static_cast<std::uint32_t>(Port::kNvlinkOut), group}, "NVLink of " + canvas_.answer.by(Grouping::kSide).name(group) + ", " + percent(share) + " of what it could carry", bus, {mark});
    }

    Canvas& canvas_;
    const std::vector<PortRow>& sides_;
};

}  // namespace

Scene timeline_view(Canvas canvas) {
    const auto& course = canvas.answer.a.course;
    canvas.header("When each part runs, and what waits for what", headline_of(canvas.answer.a) + "; " + grouped(course.run ? course.run->graph.tasks.size() : 0) + " tasks on " + grouped(course.lanes.size()) + " lanes; W S zoom, A D move");
    if (!course.run) {
        canvas.nothing("Not simulated yet", "the closed form has no course; release the slider to simulate");
        return std::move(canvas.scene);
    }
    TimelinePicture{canvas}.draw();
    return std::move(canvas.scene);
}

Scene links_view(Canvas canvas) {
    const auto& answer = canvas.answer;
    const auto& course = answer.a.course;
    const auto grouping = canvas.state.grouping.value_or(finest(answer.groups, 26));
    const auto& groups = answer.by(grouping);
    canvas.header("When each link is busy", "a row: the ports of a " + std::string{title_of(grouping)} + ", the mean over its GPUs; " + headline_of(answer.a));
    if (!course.run || course.ports.empty()) {
        canvas.nothing("Not simulated yet", "the closed form has no course; release the slider to simulate");
        return std::move(canvas.scene);
    }
    auto& body = canvas.body;
    canvas.scale("idle", "full rate", body.x, body.y);
    const auto sides = port_rows(course, answer.by(Grouping::kSide));
    const auto top = std::clamp(body.height * 0.22, 96.0, 130.0);
    Topology{canvas, sides}.draw({body.x, body.y + 26.0, body.width, top});
    const Frame area{body.x + kName, body.y + top + 42.0, body.width - kName - kShare, body.height - top - 42.0 - 26.0};
    const TimeScale scale{window_of(canvas), area.x, area.width};
    auto rows = port_rows(course, groups);
    std::erase_if(rows, [](const PortRow& row) { return row.share < 1e-4; });
    const auto row_height = std::clamp(area.height / static_cast<double>(std::max<std::size_t>(1, rows.size())), 2.0, 30.0);
    const auto most = static_cast<std::size_t>(area.height / row_height);
    const auto shown = std::min(rows.size(), most);
    const auto columns = static_cast<std::uint32_t>(std::clamp(area.width, 100.0, 1200.0));
    HeatMark heat{{area.x, area.y, area.width, row_height * static_cast<double>(shown)}, static_cast<std::uint32_t>(shown), columns, {}};
    canvas.scene.text({body.x + kName + area.width + 4.0, area.y - 18.0, kShare - 4.0, 15.0}, "busy", Ink::kMuted, Align::kRight, 11.0);
    double last = -100.0;
    std::optional<Port> previous;
    for (std::size_t i = 0; i < shown; ++i) {
        const auto& row = rows[i];
        for (std::uint32_t column = 0; column < columns; ++column) {
            const auto time = scale.time_at(area.x + (column + 0.5) / columns * area.width);
            const auto bin = std::min(course.bins - 1, static_cast<std::size_t>(std::max(0.0, time / course.seconds()) * static_cast<double>(course.bins)));
            heat.shares.push_back(row.shares[bin]);
        }
        const auto y = area.y + static_cast<double>(i) * row_height;
        const auto name = std::string{refit::name_of(row.port)} + ", " + groups.name(row.group);
        if (previous && *previous != row.port) {
            canvas.scene.line({body.x + 40.0, y}, {body.right(), y}, Ink::kOutline);
            last = -100.0;
        }
        if (y + row_height / 2.0 >= last + 12.5 || previous != row.port) {
            last = y + row_height / 2.0;
            canvas.scene.text({body.x, last - 8.0, kName - 10.0, 16.0}, name, Ink::kText, Align::kRight, 11.0);
            canvas.scene.text({area.right() + 4.0, last - 8.0, kShare - 4.0, 16.0}, percent(row.share), Ink::kMuted, Align::kRight, 11.0);
        }
        previous = row.port;
        canvas.element({Target::Kind::kPort, grouping, static_cast<std::uint32_t>(row.port), row.group}, name + ", " + percent(row.share) + " of what it could carry", {area.x, y, area.width, row_height});
    }
    const auto heat_frame = heat.frame;
    canvas.scene.add(std::move(heat));
    for (std::size_t i = 1; i < shown; ++i) {
        if (rows[i].port != rows[i - 1].port) {
            const auto y = area.y + static_cast<double>(i) * row_height;
            canvas.scene.line({area.x, y}, {area.right(), y}, Ink::kBackground, 3.0);
        }
    }
    canvas.time_axis(scale, {heat_frame.x, heat_frame.y, heat_frame.width, heat_frame.height}, false);
    if (canvas.state.now) {
        const auto x = scale.x_of(*canvas.state.now);
        if (x >= area.x && x <= area.right()) {
            canvas.scene.line({x, heat_frame.y}, {x, heat_frame.bottom()}, Ink::kAccent, 2.0);
        }
    }
    return std::move(canvas.scene);
}

Scene make_strip(const Answer& answer, const ViewState& state, double width, double height) {
    Canvas canvas{answer, state, width, height};
    const auto& course = answer.a.course;
    const auto end = course.seconds();
    if (!course.run || end <= 0.0) {
        return std::move(canvas.scene);
    }
    const Frame area{16.0, 4.0, width - 32.0, height - 26.0};
    const TimeScale scale{{0.0, end}, area.x, area.width};
    canvas.scene.add(RectMark{area, {Ink::kPanel}});
    for (const auto& step : course.run->path) {
        const auto from = scale.x_of(step.from);
        canvas.scene.add(RectMark{{from, area.y, std::max(0.5, scale.x_of(step.to) - from), area.height}, paint_of(course.run->graph.tasks[step.task].activity)});
    }
    canvas.time_axis(scale, area, false);
    if (state.window) {
        const auto from = scale.x_of(state.window->from);
        const auto to = scale.x_of(state.window->to);
        canvas.scene.add(RectMark{{area.x, area.y, from - area.x, area.height}, {Ink::kBackground, 0.7}});
        canvas.scene.add(RectMark{{to, area.y, area.right() - to, area.height}, {Ink::kBackground, 0.7}});
        canvas.scene.add(RectMark{{from, area.y, std::max(2.0, to - from), area.height}, {}, {Ink::kAccent}, 2.0});
    }
    if (state.now) {
        const auto x = scale.x_of(*state.now);
        canvas.scene.line({x, area.y}, {x, area.bottom()}, Ink::kAccent, 3.0);
    }
    return std::move(canvas.scene);
}

}  // namespace refit::gui
