// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "refit/gui/groups.hpp"
#include "refit/gui/theme.hpp"
#include "refit/simulate.hpp"

namespace refit::gui {

/// A part of the refit that is seen: from `from` to `to`, in seconds. Invariant: from < to.
struct TimeWindow {
    double from = 0.0;
    double to = 1.0;

    [[nodiscard]] double length() const noexcept { return to - from; }
    bool operator==(const TimeWindow&) const = default;
};

/// Seconds to pixels and back.
class TimeScale {
public:
    /// Pre: the width is positive.
    TimeScale(TimeWindow window, double x, double width) : window_{window}, x_{x}, width_{width} {}

    [[nodiscard]] double x_of(double time) const noexcept {
        return x_ + (time - window_.from) / window_.length() * width_;
    }
    [[nodiscard]] double time_at(double x) const noexcept {
        return window_.from + (x - x_) / width_ * window_.length();
    }
    [[nodiscard]] const TimeWindow& window() const noexcept { return window_; }

private:
    TimeWindow window_;
    double x_;
    double width_;
};

/// Round numbers between the ends, at least `least` of them where that is possible. Pre: low < high.
[[nodiscard]] std::vector<double> round_ticks(double low, double high, std::size_t least);

/// `window` zoomed by `factor` about a time, kept within 0 to `end` and no shorter than a millionth of it.
[[nodiscard]] TimeWindow zoomed(TimeWindow window, double about, double factor, double end);
/// Moved by a share of its length, kept within 0 to `end`.
[[nodiscard]] TimeWindow panned(TimeWindow window, double share, double end);

/// What one lane did: its tasks in the order of their start.
struct CourseLane {
    std::uint32_t lane = 0;
    std::string name;
    std::vector<std::uint32_t> tasks;
    double busy_seconds = 0.0;
};

/// A stretch of pixels of a lane in which it did the same, or many things.
struct LaneSlot {
    double from = 0.0;  ///< Unit: s.
    double to = 0.0;
    std::uint32_t task = 0;   ///< The first.
    std::uint32_t tasks = 1;
    double busy_share = 1.0;  ///< Of the slot.
    Activity activity = Activity::kControl;  ///< Of most of its time.
};

/// How busy a kind of port was, over equal parts of the time.
struct PortCourse {
    Port port = Port::kNicOut;
    std::vector<std::uint32_t> ranks;  ///< That have it; of a pod's uplink, the pod's first.
    std::uint32_t link = 0;
    double capacity = 0.0;             ///< Of one rank's. Unit: bytes per second.
    std::vector<float> shares;         ///< By bin. Range: 0 to 1.
    float share = 0.0F;                ///< Of all the time.
};

/// A simulation arranged for drawing. The same for every theme and size.
struct Course {
    std::shared_ptr<const Simulation> run;
    std::vector<CourseLane> lanes;  ///< Those that did anything.
    std::vector<PortCourse> ports;  ///< Those that carried anything.
    std::size_t bins = 0;

    [[nodiscard]] double seconds() const noexcept { return run ? run->seconds() : 0.0; }
};

/// Pre: the simulation kept its segments.
[[nodiscard]] Course make_course(std::shared_ptr<const Simulation> run, std::size_t bins = 400);

/// A lane's tasks within the window, so that none is narrower than `least` seconds: shorter ones are put together.
/// Cost: in the lane's tasks within the window.
[[nodiscard]] std::vector<LaneSlot> slots_of(const Course& course, const CourseLane& lane, TimeWindow window, double least);

/// A row of ports of a group of ranks: the mean over its ranks, by bin.
struct PortRow {
    Port port = Port::kNicOut;
    std::uint32_t group = 0;
    std::vector<float> shares;
    double share = 0.0;
};
/// Rows of the four ports of every group that used them, by port and group.
[[nodiscard]] std::vector<PortRow> port_rows(const Course& course, const Groups& groups);

/// The busiest port of each rank at a time. Range: 0 to 1.
[[nodiscard]] std::vector<float> busy_at(const Course& course, double time, std::uint32_t ranks);

/// The colour of an activity; those of one phase share it.
[[nodiscard]] Ink ink_of(Activity activity) noexcept;
/// How the two or three activities of one colour are told apart.
[[nodiscard]] std::uint8_t shade_of(Activity activity) noexcept;

}  // namespace refit::gui
