// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "canvas.hpp"
#include "refit/gui/table.hpp"
#include "refit/quantity.hpp"

namespace refit::gui {
namespace {

constexpr double kOneColumn = 620.0;  ///< Below it one column holds all.

Ink ink_of_phase(const std::string& phase) {
    static const std::map<std::string, Ink> kInks{{"fixed", Ink::kControl}, {"bulk", Ink::kTransfer}, {"gather", Ink::kGather}, {"broadcast", Ink::kBroadcast}, {"load", Ink::kLoad}, {"finalize", Ink::kReplica}};
    const auto found = kInks.find(phase);
    return found == kInks.end() ? Ink::kMuted : found->second;
}

/// All methods on one axis: closed form with its range, simulated, published, measured; and the bound.
class MethodsChart {
public:
    MethodsChart(Canvas& canvas, const Frame& frame)
        : canvas_{canvas}, frame_{frame}, name_{frame.width < kOneColumn ? 146.0 : 160.0}, legend_{legend_of(canvas.answer)}, is_low_{frame.width < 560.0},
          top_{is_low_ ? 40.0 + kLegendRow * static_cast<double>(legend_places().back().second + 1) : 46.0},
          plot_{frame.x + name_ + 10.0, frame.y + top_, frame.width - name_ - 10.0 - 66.0, frame.height - top_ - 26.0} {
        for (const auto& method : canvas.answer.report.methods) {
            if (method.refused.empty()) {
                end_ = std::max({end_, method.high.value(), method.published && method.published->seconds ? method.published->seconds->value() : 0.0});
            }
        }
        for (const auto& [method, measured] : canvas.answer.measured) {
            end_ = std::max(end_, measured.seconds.value());
        }
        end_ = std::max(end_, 1e-6) * 1.04;
    }

    void draw() {
        auto& scene = canvas_.scene;
        scene.text({frame_.x, frame_.y, frame_.width, 18.0}, "Every method", Ink::kText, Align::kLeft, 13.5, true);
        legend();
        const TimeScale scale{{0.0, end_}, plot_.x, plot_.width};
        const auto area = scene.time_area;
        canvas_.time_axis(scale, plot_);
        scene.time_area = area;  // This axis is not the course's.
        const auto& methods = canvas_.answer.report.methods;
        const auto height = plot_.height / static_cast<double>(methods.size());
        for (std::size_t i = 0; i < methods.size(); ++i) {
            row(methods[i], {plot_.x, plot_.y + static_cast<double>(i) * height, plot_.width, height}, scale);
        }
        const auto bound = canvas_.answer.report.line_rate_bound.time.value();
        const auto x = scale.x_of(bound);
        scene.add(LineMark{{{x, plot_.y}, {x, plot_.bottom()}}, {Ink::kCritical}, 1.5, true});
        const auto text = "bound " + format_seconds(Seconds{bound}) + ": no plan is faster";
        const auto width = text_width(text, 10.5) + 4.0;
        scene.text({std::min(x + 4.0, frame_.right() - width), plot_.y - 16.0, width, 14.0}, text, Ink::kCritical, Align::kLeft, 10.5);
    }

private:
    enum class Sign : std::uint8_t { kBar, kRange, kDot, kDiamond, kCross, kNone };
    static constexpr double kLegendRow = 17.0;

    static std::vector<std::pair<Sign, std::string>> legend_of(const Answer& answer) {
        std::vector<std::pair<Sign, std::string>> entries{{Sign::kBar, "closed form"}, {Sign::kRange, "80 % range"}, {Sign::kDot, "simulated"}, {Sign::kDiamond, "published"}};
        if (!answer.measured.empty()) {
            entries.emplace_back(Sign::kCross, "measured");
        }
        if (std::ranges::any_of(answer.report.methods, [](const MethodReport& method) { return !method.is_calibrated && method.refused.empty(); })) {
            entries.emplace_back(Sign::kNone, "? uncalibrated");
        }
        return entries;
    }

    /// By entry: how far right it begins, and in which row.
    [[nodiscard]] std::vector<std::pair<double, std::size_t>> legend_places() const {
        std::vector<std::pair<double, std::size_t>> places;
        const auto left = is_low_ ? 0.0 : 120.0;
        std::pair<double, std::size_t> next{left, 0};
        for (const auto& [sign, text] : legend_) {
            const auto width = (sign == Sign::kNone ? 0.0 : 14.0) + text_width(text, 11.0);
            if (next.first > left && next.first + width > frame_.width && is_low_) {
                next = {left, next.second + 1};
            }
            places.push_back(next);
            next.first += width + 12.0;
        }
        return places;
    }

    void legend() {
        const auto places = legend_places();
        for (std::size_t i = 0; i < legend_.size(); ++i) {
            const auto& [sign, text] = legend_[i];
            const auto x = frame_.x + places[i].first;
            const auto y = frame_.y + (is_low_ ? 22.0 : 2.0) + kLegendRow * static_cast<double>(places[i].second);
            const auto width = text_width(text, 11.0) + 4.0;
            if (x + 14.0 + width - 8.0 > frame_.right()) {
                return;
            }
            draw_sign(sign, {x, y + 8.0});
            canvas_.scene.text({x + (sign == Sign::kNone ? 0.0 : 14.0), y, width, 15.0}, text, Ink::kMuted, Align::kLeft, 11.0);
        }
    }

    void draw_sign(Sign sign, Point left) {
        switch (sign) {
            case Sign::kBar:
                canvas_.scene.add(RectMark{{left.x, left.y - 4.0, 10.0, 8.0}, {}, {Ink::kTransfer}, 1.5});
                break;
            case Sign::kRange:
                canvas_.scene.add(LineMark{{left, {left.x + 11.0, left.y}}, {Ink::kText}, 1.5});
                break;
            case Sign::kDot:
                dot({left.x + 5.0, left.y});
                break;
            case Sign::kDiamond:
                diamond({left.x + 5.0, left.y});
                break;
            case Sign::kCross:
                cross({left.x + 5.0, left.y});
                break;
            case Sign::kNone:
                break;
        }
    }

    void dot(Point at) { canvas_.scene.add(RectMark{{at.x - 4.0, at.y - 4.0, 8.0, 8.0}, {Ink::kText}, {Ink::kBackground}, 1.0, Pattern::kSolid, 4.0}); }
    void diamond(Point at) {
        canvas_.scene.add(AreaMark{{{at.x, at.y - 6.0}, {at.x + 6.0, at.y}, {at.x, at.y + 6.0}, {at.x - 6.0, at.y}}, {Ink::kAccent}});
    }
    void cross(Point at) {
        canvas_.scene.add(LineMark{{{at.x - 5.0, at.y - 5.0}, {at.x + 5.0, at.y + 5.0}}, {Ink::kCritical}, 2.5});
        canvas_.scene.add(LineMark{{{at.x - 5.0, at.y + 5.0}, {at.x + 5.0, at.y - 5.0}}, {Ink::kCritical}, 2.5});
    }

    void row(const MethodReport& method, const Frame& row, const TimeScale& scale) {
        auto& scene = canvas_.scene;
        const auto& answer = canvas_.answer;
        const bool is_a = method.method == answer.a.report.method;
        const bool is_b = method.method == answer.b.report.method;
        const auto middle = row.y + row.height / 2.0;
        const auto name = std::string{is_a ? "A  " : is_b ? "B  " : ""} + short_title(method.method) + (method.is_calibrated || !method.refused.empty() ? "" : " ?");
        scene.text({frame_.x, middle - 9.0, name_, 18.0}, name, Ink::kText, Align::kRight, 12.0, is_a || is_b);
        const Target target{Target::Kind::kMethod, Grouping::kRank, static_cast<std::uint32_t>(method.method), 0};
        if (!method.refused.empty()) {
            scene.text({row.x + 6.0, middle - 9.0, row.width, 18.0}, "cannot run: " + method.refused.front().message, Ink::kWarn, Align::kLeft, 11.5);
            canvas_.element(target, title_of(method.method) + " cannot run: " + method.refused.front().message, row);
            return;
        }
        const auto thick = std::min(18.0, row.height * 0.5);
        const Frame bar{row.x, middle - thick / 2.0, std::max(1.0, scale.x_of(method.seconds.value()) - row.x), thick};
        const auto ink = is_a || is_b ? Ink::kTransfer : Ink::kOutline;
        const auto mark = scene.add(RectMark{bar, {ink, 0.22}, {ink}, 1.5, Pattern::kSolid, 2.0});
        whisker(scale.x_of(std::max(0.0, method.low.value())), scale.x_of(method.high.value()), middle);
        if (is_a && answer.a.report.simulated) {
            dot({scale.x_of(answer.a.seconds().value()), middle});
        } else if (is_b && answer.b.report.simulated) {
            dot({scale.x_of(answer.b.seconds().value()), middle});
        }
        if (method.published && method.published->seconds) {
            diamond({scale.x_of(method.published->seconds->value()), middle});
        }
        if (const auto measured = answer.measured.find(method.method); measured != answer.measured.end()) {
            cross({scale.x_of(measured->second.seconds.value()), middle});
        }
        scene.text({row.right() + 4.0, middle - 9.0, 62.0, 18.0}, format_seconds(method.seconds), Ink::kText, Align::kRight, 12.0, is_a || is_b);
        canvas_.element(target, title_of(method.method) + ", " + format_seconds(method.seconds) + " by the closed form, 80 % range " + format_seconds(method.low) + " to " + format_seconds(method.high) + ", " + format_bytes(method.network) + " on NICs", row, {mark});
    }

    void whisker(double low, double high, double y) {
        canvas_.scene.add(LineMark{{{low, y}, {high, y}}, {Ink::kText}, 1.5});
        canvas_.scene.add(LineMark{{{low, y - 4.0}, {low, y + 4.0}}, {Ink::kText}, 1.5});
        canvas_.scene.add(LineMark{{{high, y - 4.0}, {high, y + 4.0}}, {Ink::kText}, 1.5});
    }

    Canvas& canvas_;
    Frame frame_;
    double name_;  ///< Width of names.
    std::vector<std::pair<Sign, std::string>> legend_;
    bool is_low_;  ///< The key lies below the title.
    double top_;
    Frame plot_;
    double end_ = 0.0;
};

/// A's and B's phases on one scale.
void breakdown(Canvas& canvas, const Frame& frame) {
    auto& scene = canvas.scene;
    scene.text({frame.x, frame.y, frame.width, 18.0}, "What the time goes into, closed form", Ink::kText, Align::kLeft, 13.5, true);
    double end = 1e-9;
    for (const auto* shown : {&canvas.answer.a, &canvas.answer.b}) {
        end = std::max(end, shown->is_refused() ? 0.0 : shown->report.seconds.value());
    }
    const Frame plot{frame.x + 152.0, frame.y + 28.0, frame.width - 152.0 - 60.0, frame.height - 28.0 - 26.0};
    const auto second_key_row = frame.width < 360.0 ? 19.0 : 0.0;
    const auto height = std::min(44.0, (plot.height - second_key_row) / 2.0);
    std::vector<std::string> used;
    std::size_t index = 0;
    for (const auto* shown : {&canvas.answer.a, &canvas.answer.b}) {
        const auto y = plot.y + static_cast<double>(index) * height;
        scene.text({frame.x, y, 146.0, height - 8.0}, (index == 0 ? "A  " : "B  ") + short_title(shown->report.method), Ink::kText, Align::kRight, 12.0, true);
        double x = plot.x;
        for (const auto& phase : shown->report.phases) {
            if (phase.is_hidden || phase.seconds.value() <= 0.0 || shown->is_refused()) {
                continue;
            }
            const auto width = phase.seconds.value() / end * plot.width;
            const Paint paint{ink_of_phase(phase.name)};
            const auto mark = scene.add(RectMark{{x, y, std::max(0.5, width - 1.0), height - 8.0}, paint, {}, 1.0, Pattern::kSolid, 2.0});
            const auto text = phase.name + " " + format_seconds(phase.seconds);
            if (width > text_width(text, 11.0)) {
                scene.add(TextMark{{x, y, width, height - 8.0}, text, {Ink::kText}, Align::kCentre, 11.0, false, paint});
            }
            canvas.element({Target::Kind::kMethod, Grouping::kRank, static_cast<std::uint32_t>(shown->report.method), 0}, title_of(shown->report.method) + ": " + phase.name + " " + format_seconds(phase.seconds), {x, y, width, height - 8.0}, {mark});
            if (std::ranges::find(used, phase.name) == used.end()) {
                used.push_back(phase.name);
            }
            x += width;
        }
        if (!shown->is_refused()) {
            scene.text({plot.right() + 2.0, y, 58.0, height - 8.0}, format_seconds(shown->report.seconds), Ink::kText, Align::kRight, 12.0, true);
        }
        ++index;
    }
    std::vector<Canvas::KeyEntry> entries;
    for (const auto& name : used) {
        entries.push_back({name == "bulk" ? "bulk transfers" : name, {ink_of_phase(name)}});
    }
    const auto indent = frame.width < kNarrow ? 0.0 : 60.0;
    canvas.key_rows(entries, frame.x + indent, plot.y + 2.0 * height + 2.0, frame.width - indent);
}

/// A's and B's time over the NIC rate, both logarithmic, and where they cross.
class Crossover {
public:
    Crossover(Canvas& canvas, const Frame& frame) : canvas_{canvas}, frame_{frame}, plot_{frame.x + 64.0, frame.y + 34.0, frame.width - 64.0 - 144.0, frame.height - 34.0 - 44.0} {}

    void draw() {
        auto& scene = canvas_.scene;
        const auto& sweep = canvas_.answer.sweep;
        scene.text({frame_.x, frame_.y, frame_.width, 18.0}, "If the NICs were faster or slower", Ink::kText, Align::kLeft, 13.5, true);
        if (sweep.size() < 2) {
            scene.text({frame_.x, plot_.y, frame_.width, 18.0}, canvas_.answer.question.is_draft ? "comes with the simulation" : "one of the two methods cannot run", Ink::kMuted);
            return;
        }
        low_ = high_ = sweep.front().a;
        for (const auto& point : sweep) {
            low_ = std::min({low_, point.a, point.b});
            high_ = std::max({high_, point.a, point.b});
        }
        low_ /= 1.25;
        high_ *= 1.25;
        axes();
        line(&SweepPoint::a, Ink::kTransfer, short_title(canvas_.answer.a.report.method), false);
        line(&SweepPoint::b, Ink::kGather, short_title(canvas_.answer.b.report.method), true);
        crossing();
        here();
    }

private:
    [[nodiscard]] double x_of(double rate) const {
        const auto& sweep = canvas_.answer.sweep;
        return plot_.x + std::log(rate / sweep.front().nic_gbits) / std::log(sweep.back().nic_gbits / sweep.front().nic_gbits) * plot_.width;
    }
    [[nodiscard]] double y_of(double seconds) const { return plot_.bottom() - std::log(seconds / low_) / std::log(high_ / low_) * plot_.height; }

    void axes() {
        auto& scene = canvas_.scene;
        for (const auto& point : canvas_.answer.sweep) {
            const auto x = x_of(point.nic_gbits);
            scene.line({x, plot_.y}, {x, plot_.bottom()});
            scene.text({x - 30.0, plot_.bottom() + 5.0, 60.0, 14.0}, number("%.0f", point.nic_gbits), Ink::kMuted, Align::kCentre, 11.0);
        }
        for (auto power = std::floor(std::log10(low_)); power <= std::log10(high_); power += 1.0) {
            const bool is_wide = high_ > 6.0 * low_;
            for (const auto factor : is_wide ? std::array{1.0, 1.0, 2.0, 2.0, 5.0} : std::array{1.0, 1.5, 2.0, 3.0, 6.0}) {
                const auto value = factor * std::pow(10.0, power);
                if (value >= low_ && value <= high_) {
                    const auto y = y_of(value);
                    scene.line({plot_.x, y}, {plot_.right(), y});
                    scene.text({frame_.x, y - 8.0, 58.0, 16.0}, time_text(value), Ink::kMuted, Align::kRight, 11.0);
                }
            }
        }
        scene.add(RectMark{plot_, {}, {Ink::kOutline}});
        scene.text({plot_.x, plot_.bottom() + 21.0, plot_.width, 15.0}, "line rate of one NIC, Gbit/s", Ink::kMuted, Align::kCentre, 11.0);
    }

    void line(double SweepPoint::*value, Ink ink, const std::string& name, bool is_dashed) {
        LineMark mark{{}, {ink}, 2.5, is_dashed};
        for (const auto& point : canvas_.answer.sweep) {
            mark.points.push_back({x_of(point.nic_gbits), y_of(point.*value)});
        }
        const auto end = mark.points.back();
        canvas_.scene.add(std::move(mark));
        for (const auto& point : canvas_.answer.sweep) {
            canvas_.scene.add(RectMark{{x_of(point.nic_gbits) - 3.5, y_of(point.*value) - 3.5, 7.0, 7.0}, {Ink::kBackground}, {ink}, 2.0, Pattern::kSolid, 3.5});
        }
        // Where the lines end close together, their names keep apart.
        const auto& last = canvas_.answer.sweep.back();
        const auto other = y_of(value == &SweepPoint::a ? last.b : last.a);
        const auto gap = end.y - other;
        const auto apart = std::abs(gap) < 16.0 ? (gap > 0.0 || (gap == 0.0 && is_dashed) ? 8.0 - gap / 2.0 : -8.0 - gap / 2.0) : 0.0;
        canvas_.scene.text({end.x + 9.0, end.y - 9.0 + apart, 134.0, 18.0}, name, Ink::kText, Align::kLeft, 11.5, true);
    }

    void crossing() {
        const auto& sweep = canvas_.answer.sweep;
        for (std::size_t i = 1; i < sweep.size(); ++i) {
            const auto before = std::log(sweep[i - 1].a / sweep[i - 1].b);
            const auto after = std::log(sweep[i].a / sweep[i].b);
            if (before * after < 0.0) {
                const auto share = before / (before - after);
                const auto rate = sweep[i - 1].nic_gbits * std::pow(sweep[i].nic_gbits / sweep[i - 1].nic_gbits, share);
                const auto x = x_of(rate);
                canvas_.scene.add(LineMark{{{x, plot_.y}, {x, plot_.bottom()}}, {Ink::kCritical}, 1.5, true});
                canvas_.scene.text({x + 4.0, plot_.y + 4.0, 130.0, 14.0}, number("equal at %.0f Gbit/s", rate), Ink::kCritical, Align::kLeft, 11.0);
            }
        }
    }

    void here() {
        const auto rate = canvas_.answer.scenario.cluster.train_system().nic.value.bytes_per_second() * 8e-9;
        const auto& sweep = canvas_.answer.sweep;
        if (rate >= sweep.front().nic_gbits && rate <= sweep.back().nic_gbits) {
            const auto x = x_of(rate);
            canvas_.scene.add(LineMark{{{x, plot_.y}, {x, plot_.bottom()}}, {Ink::kAccent}, 1.5, true});
            canvas_.scene.text({x - 60.0, plot_.y - 16.0, 120.0, 14.0}, "yours", Ink::kAccent, Align::kCentre, 11.0, true);
        }
    }

    Canvas& canvas_;
    Frame frame_;
    Frame plot_;
    double low_ = 1.0;
    double high_ = 1.0;
};

void side_by_side(Canvas& canvas, const Frame& frame) {
    auto& scene = canvas.scene;
    const auto list = differences(canvas.answer.a, canvas.answer.b, canvas.state.shows_only_differences);
    const std::array columns{frame.x, frame.x + frame.width * 0.235, frame.x + frame.width * 0.53, frame.x + frame.width * 0.82};
    scene.text({frame.x, frame.y, frame.width, 18.0}, canvas.state.shows_only_differences ? "Side by side, only what differs" : "Side by side", Ink::kText, Align::kLeft, 13.5, true);
    const auto width = frame.width * 0.275;
    const auto head = frame.width < 400.0 ? 9.0 : frame.width < 500.0 ? 10.0 : 11.5;
    scene.text({columns[1], frame.y + 24.0, width, 16.0}, "A  " + short_title(canvas.answer.a.report.method), Ink::kText, Align::kRight, head, true);
    scene.text({columns[2], frame.y + 24.0, width, 16.0}, "B  " + short_title(canvas.answer.b.report.method), Ink::kText, Align::kRight, head, true);
    scene.text({columns[3], frame.y + 24.0, frame.width * 0.18, 16.0}, "B - A", Ink::kMuted, Align::kRight, 11.5);
    auto y = frame.y + 44.0;
    if (list.empty() && !canvas.answer.a.is_refused() && !canvas.answer.b.is_refused()) {
        scene.text({frame.x, y, frame.width, 20.0}, "A and B do not differ in any of it", Ink::kMuted, Align::kLeft, 11.5);
    }
    // In a low frame the first lines only, which say most.
    constexpr double kLeast = 13.0;
    const auto count = std::min(list.size(), static_cast<std::size_t>(std::max(1.0, (frame.height - 44.0) / kLeast)));
    const auto height = std::min(20.0, (frame.height - 44.0) / static_cast<double>(std::max<std::size_t>(1, count)));
    for (std::size_t i = 0; i < count; ++i) {
        const auto& line = list[i];
        scene.line({frame.x, y}, {frame.right(), y});
        scene.text({columns[0], y, frame.width * 0.3, height}, line.name, Ink::kMuted, Align::kLeft, 11.5);
        scene.text({columns[1], y, width, height}, line.a, Ink::kText, Align::kRight, 11.5);
        scene.text({columns[2], y, width, height}, line.b, Ink::kText, Align::kRight, 11.5);
        scene.text({columns[3], y, frame.width * 0.18, height}, line.delta, line.is_same ? Ink::kMuted : Ink::kText, Align::kRight, 11.5);
        y += height;
    }
}

/// What takes the time in A and in B, on one axis.
void both_courses(Canvas& canvas, const Frame& frame) {
    auto& scene = canvas.scene;
    scene.text({frame.x, frame.y, frame.width, 18.0}, "What takes the time, when: simulated, on one axis", Ink::kText, Align::kLeft, 13.5, true);
    const auto end = canvas.answer.end();
    if (end <= 0.0) {
        scene.text({frame.x, frame.y + 24.0, frame.width, 18.0}, "not simulated yet", Ink::kMuted);
        return;
    }
    const Frame plot{frame.x + 24.0, frame.y + 26.0, frame.width - 26.0, frame.height - 26.0 - 24.0};
    const TimeScale scale{{0.0, end}, plot.x, plot.width};
    const auto height = std::min(46.0, plot.height / 2.0);
    std::size_t index = 0;
    for (const auto* shown : {&canvas.answer.a, &canvas.answer.b}) {
        const Frame row{plot.x, plot.y + static_cast<double>(index) * height, plot.width, height - 8.0};
        scene.text({frame.x, row.y, 18.0, row.height}, index == 0 ? "A" : "B", Ink::kText, Align::kCentre, 12.0, true);
        scene.add(RectMark{row, {Ink::kPanel}});
        if (shown->course.run) {
            add_critical_path(scene, *shown->course.run, scale, row);
        }
        ++index;
    }
    const auto area = scene.time_area;
    canvas.time_axis(scale, {plot.x, plot.y, plot.width, 2.0 * height}, false);
    scene.time_area = area;
}

void in_two_columns(Canvas& canvas) {
    const auto& body = canvas.body;
    const auto left = body.width * 0.54;
    const auto top = body.height * 0.52;
    MethodsChart{canvas, {body.x, body.y, left, top - 16.0}}.draw();
    breakdown(canvas, {body.x + left + 28.0, body.y, body.width - left - 28.0, top * 0.44});
    Crossover{canvas, {body.x, body.y + top + 6.0, left, body.height - top - 6.0}}.draw();
    const Frame right{body.x + left + 28.0, body.y + top * 0.44 + 10.0, body.width - left - 28.0, body.height - top * 0.44 - 10.0};
    side_by_side(canvas, {right.x, right.y, right.width, std::min(252.0, right.height)});
    if (right.height > 350.0) {
        both_courses(canvas, {right.x, right.y + 266.0, right.width, right.height - 266.0});
    }
}

/// What matters most first; what there is no room for is left out.
void in_one_column(Canvas& canvas) {
    const auto& body = canvas.body;
    double y = body.y;
    const auto place = [&](double least, double most) {
        const auto room = body.bottom() - y;
        const Frame frame{body.x, y, body.width, std::min(room, most)};
        y += room < least ? 0.0 : frame.height + 12.0;
        return room < least ? std::nullopt : std::optional{frame};
    };
    if (const auto frame = place(0.0, std::clamp(body.height * 0.36, 190.0, 300.0))) {
        MethodsChart{canvas, *frame}.draw();
    }
    if (const auto frame = place(110.0, std::clamp(body.height * 0.24, body.width < 360.0 ? 138.0 : 122.0, 150.0))) {
        breakdown(canvas, *frame);
    }
    if (const auto frame = place(96.0, 252.0)) {
        side_by_side(canvas, *frame);
    }
    if (const auto frame = place(150.0, 320.0)) {
        Crossover{canvas, *frame}.draw();
    }
}

}  // namespace

Scene compare_view(Canvas canvas) {
    const auto& answer = canvas.answer;
    auto line = "A " + headline_of(answer.a) + "; B " + headline_of(answer.b);
    if (!answer.a.is_refused() && !answer.b.is_refused()) {
        const auto ratio = answer.b.seconds() / answer.a.seconds();
        line += ratio >= 1.0 ? number("; A is %.1fx faster", ratio) : number("; B is %.1fx faster", 1.0 / ratio);
    }
    canvas.header("What each method costs", line);
    canvas.body.width < kOneColumn ? in_one_column(canvas) : in_two_columns(canvas);
    return std::move(canvas.scene);
}

}  // namespace refit::gui
