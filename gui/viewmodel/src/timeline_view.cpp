// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include "canvas.hpp"
#include "refit/quantity.hpp"

namespace refit::gui {
namespace {

constexpr double kWidestName = 196.0;
constexpr double kShare = 56.0;
constexpr double kSummed = 22.0;

TimeWindow window_of(const Canvas& canvas) {
    return canvas.state.window.value_or(TimeWindow{0.0, std::max(1e-9, canvas.answer.a.course.seconds())});
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
        : canvas_{canvas}, course_{canvas.answer.a.course}, name_{std::clamp(canvas.body.width * 0.3, 110.0, kWidestName)}, key_height_{Canvas::key_height(all_entries(course_), canvas.body.width)},
          area_{canvas.body.x + name_, canvas.body.y + key_height_ + 9.0, canvas.body.width - name_ - kShare, canvas.body.height - key_height_ - 9.0 - 26.0},
          scale_{window_of(canvas), area_.x, area_.width} {}

    void draw() {
        auto& scene = canvas_.scene;
        pick_rows();
        canvas_.time_axis(scale_, area_);
        scene.text({area_.right() + 4.0, area_.y + critical_height_ + kSummed, kShare - 4.0, 14.0}, "busy", Ink::kMuted, Align::kRight, 11.0);
        auto y = area_.y + 2.0;
        critical_row({area_.x, y, area_.width, critical_height_});
        y += critical_height_ + 4.0;
        summed_row({area_.x, y, area_.width, kSummed});
        y += kSummed + 10.0;
        for (const auto* lane : lanes_) {
            lane_row(*lane, {area_.x, y, area_.width, row_height_ - 3.0});
            y += row_height_;
        }
        if (hidden_lanes_ > 0) {
            scene.text({canvas_.body.x, y, name_ - 10.0, 14.0}, longest({grouped(hidden_lanes_) + (hidden_lanes_ == 1 ? " more lane: scroll" : " more lanes: scroll"), grouped(hidden_lanes_) + " more: scroll"}, name_ - 10.0), Ink::kMuted, Align::kRight, 11.0);
            y += 16.0;
        }
        port_section(y + 8.0);
        marker();
        key();
    }

private:
    static Canvas::KeyEntry entry_of(Activity activity) { return {std::string{refit::name_of(activity)}, paint_of(activity), pattern_of(activity)}; }
    static Canvas::KeyEntry waits() { return {"waits", {Ink::kMuted, 0.5}, Pattern::kHatch}; }

    /// The key has room for all activities of the run, so that the picture stays where it is while it is zoomed.
    static std::vector<Canvas::KeyEntry> all_entries(const Course& course) {
        std::set<Activity> found;
        for (const auto& lane : course.lanes) {
            for (const auto task : lane.tasks) {
                found.insert(course.run->graph.tasks[task].activity);
            }
        }
        std::vector<Canvas::KeyEntry> entries;
        entries.reserve(found.size() + 1);
        for (const auto activity : found) {
            entries.push_back(entry_of(activity));
        }
        entries.push_back(waits());
        return entries;
    }

    void pick_rows() {
        critical_height_ = std::clamp(area_.height * 0.07, 26.0, 60.0);
        std::vector<const CourseLane*> all;
        for (const auto& lane : course_.lanes) {
            if (matches_words(canvas_.state.filter, lane.name)) {
                all.push_back(&lane);
            }
        }
        const auto room = area_.height - critical_height_ - kSummed - 16.0 - port_height() - 26.0;
        row_height_ = std::clamp(room / static_cast<double>(std::max<std::size_t>(1, all.size())), 9.6, 54.0);
        const auto fits = std::max<std::size_t>(1, static_cast<std::size_t>(room / row_height_));
        const auto most = all.size() > fits ? all.size() - fits : 0;
        canvas_.scene.most_scroll = row_height_ * static_cast<double>(most);
        const auto first = std::min(static_cast<std::size_t>(std::lround(canvas_.state.scroll / row_height_)), most);
        for (auto i = first; i < std::min(all.size(), first + fits); ++i) {
            lanes_.push_back(all[i]);
        }
        hidden_lanes_ = all.size() - lanes_.size();
    }

    [[nodiscard]] double port_height() const { return std::clamp(area_.height * 0.27, 90.0, 240.0); }

    void row_name(const std::string& name, const std::string& share, const Frame& row, bool is_bold = false) {
        canvas_.scene.text({canvas_.body.x, row.y, name_ - 10.0, row.height}, name, Ink::kText, Align::kRight, row.height < 10.0 ? 9.5 : row.height < 14.0 ? 10.5 : 11.5, is_bold);
        canvas_.scene.text({area_.right() + 4.0, row.y, kShare - 4.0, row.height}, share, Ink::kMuted, Align::kRight, row.height < 10.0 ? 9.5 : 11.0);
    }

    /// What kept all that follows waiting: it tiles the time.
    void critical_row(const Frame& row) {
        row_name(longest({"what takes the time", "takes the time"}, name_ - 10.0, 12.5), "", row, true);
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
        const auto seen = std::ranges::count_if(parts, [&](const auto& part) { return part.first.to > scale_.window().from && part.first.from < scale_.window().to; });
        if (static_cast<double>(seen) > row.width / 5.0) {
            // Too many to tell apart: columns of their shares.
            add_critical_path(canvas_.scene, run, scale_, row);
            for (const auto& part : parts) {
                used_.insert(run.graph.tasks[part.second].activity);
            }
            parts.clear();
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

    /// The same, summed by activity, the most first.
    void summed_row(const Frame& row) {
        row_name("of it in sum", "", row);
        std::vector<std::pair<double, Activity>> sums;
        for (std::size_t i = 0; i < kActivities; ++i) {
            if (course_.run->critical[i] > 0.0) {
                sums.emplace_back(course_.run->critical[i], static_cast<Activity>(i));
            }
        }
        std::ranges::stable_sort(sums, std::greater{}, &std::pair<double, Activity>::first);
        double x = row.x;
        for (const auto& [seconds, activity] : sums) {
            const auto width = seconds / course_.seconds() * row.width;
            const Frame frame{x, row.y, std::max(0.5, width - 1.0), row.height};
            canvas_.scene.add(RectMark{frame, paint_of(activity), {}, 1.0, width > 6.0 ? pattern_of(activity) : Pattern::kSolid});
            const auto text = std::string{refit::name_of(activity)} + " " + format_seconds(Seconds{seconds});
            if (width > 0.92 * text_width(text, 11.0)) {
                canvas_.scene.add(TextMark{frame, text, {Ink::kText}, Align::kCentre, 11.0, false, paint_of(activity)});
            }
            x += width;
        }
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
                        {canvas_.body.x, row.y, name_ - 4.0, row.height});
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
        canvas_.scene.text({canvas_.body.x, y, name_ - 10.0, 15.0}, longest({"links, rate of capacity", "links, rate"}, name_ - 10.0, 12.5), Ink::kText, Align::kRight, 11.5, true);
        y += 18.0;
        const auto height = std::min(64.0, (area_.bottom() - y - 2.0) / static_cast<double>(rows.size()));
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
            entries.push_back(entry_of(activity));
        }
        if (has_waits_) {
            entries.push_back(waits());
        }
        canvas_.key_rows(entries, canvas_.body.x, canvas_.body.y, canvas_.body.width);
    }

    Canvas& canvas_;
    const Course& course_;
    double name_;  ///< Width of names.
    double key_height_;
    Frame area_;
    TimeScale scale_;
    std::vector<const CourseLane*> lanes_;
    std::set<Activity> used_;
    std::size_t hidden_lanes_ = 0;
    double row_height_ = 20.0;
    double critical_height_ = 30.0;
    bool has_waits_ = false;
};

}  // namespace

Paint paint_of(Activity activity) {
    constexpr std::array kShades{1.0, 0.72, 0.5, 0.38};
    return {ink_of(activity), kShades[shade_of(activity)]};
}

Pattern pattern_of(Activity activity) {
    constexpr std::array kPatterns{Pattern::kSolid, Pattern::kHatch, Pattern::kDots, Pattern::kCross};
    return kPatterns[shade_of(activity)];
}

void add_critical_path(Scene& scene, const Simulation& run, const TimeScale& scale, const Frame& row) {
    // Steps may be far shorter than a pixel: each column of pixels shows the parts of its time, one above the other.
    constexpr double kColumn = 3.0;
    const auto columns = static_cast<std::size_t>(std::max(1.0, row.width / kColumn));
    const auto width = row.width / static_cast<double>(columns);
    std::vector<std::array<double, kActivities>> parts(columns);
    for (const auto& step : run.path) {
        const auto from = (scale.x_of(step.from) - row.x) / width;
        const auto to = (scale.x_of(step.to) - row.x) / width;
        for (auto column = static_cast<std::size_t>(std::max(0.0, from)); column < columns && static_cast<double>(column) < to; ++column) {
            const auto begin = static_cast<double>(column);
            parts[column][static_cast<std::size_t>(run.graph.tasks[step.task].activity)] += std::max(0.0, std::min(to, begin + 1.0) - std::max(from, begin));
        }
    }
    for (std::size_t column = 0; column < columns; ++column) {
        double y = row.y;
        for (std::size_t i = 0; i < kActivities; ++i) {
            const auto height = std::min(1.0, parts[column][i]) * row.height;
            if (height > 0.0) {
                // Whole pixels, so that no seams show.
                const auto left = std::floor(row.x + static_cast<double>(column) * width);
                scene.add(RectMark{{left, y, std::floor(row.x + static_cast<double>(column + 1) * width) - left, height}, paint_of(static_cast<Activity>(i))});
                y += height;
            }
        }
    }
}

Scene timeline_view(Canvas canvas) {
    const auto& course = canvas.answer.a.course;
    canvas.header("When each part runs, and what waits for what", headline_of(canvas.answer.a) + "; " + grouped(course.run ? course.run->graph.tasks.size() : 0) + " tasks on " + grouped(course.lanes.size()) + " lanes; W S zoom, A D move");
    if (!course.run) {
        canvas.nothing("Not simulated yet", "the closed form has no course: it comes with the simulation");
        return std::move(canvas.scene);
    }
    TimelinePicture{canvas}.draw();
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
    add_critical_path(canvas.scene, *course.run, scale, area);
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
