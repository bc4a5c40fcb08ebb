// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "refit/gui/scene.hpp"
#include "refit/gui/views.hpp"

namespace refit::gui {

inline constexpr double kNarrow = 520.0;  ///< Views below it, such as one beside another, leave out what they can.

/// What all views draw alike.
class Canvas {
public:
    Canvas(const Answer& answer, const ViewState& state, double width, double height);

    /// Title and a line below it, which breaks in a narrow view.
    void header(const std::string& title, const std::string& line);
    /// Text in lines no wider than the frame, at most as many as fit its height; returns their height.
    double paragraph(const Frame& frame, const std::string& text, Ink ink = Ink::kMuted, double size = 12.0);
    /// A key of colours from `x` on, in one row; returns where it ends.
    struct KeyEntry {
        std::string text;
        Paint paint;
        Pattern pattern = Pattern::kSolid;
    };
    double key(const std::vector<KeyEntry>& entries, double x, double y);
    /// The same in as many rows as it takes.
    void key_rows(const std::vector<KeyEntry>& entries, double x, double y, double width);
    [[nodiscard]] static double key_height(const std::vector<KeyEntry>& entries, double width);
    /// A sequential scale with words at its ends; returns where it ends.
    double scale(const std::string& low, const std::string& high, double x, double y);
    /// Adds an element that a mark shows.
    void element(const Target& target, std::string name, const Frame& frame, std::vector<std::size_t> marks = {});
    /// Times below an area, with lines through it.
    void time_axis(const TimeScale& scale, const Frame& area, bool has_lines = true);
    /// What there is to say where nothing is drawn.
    void nothing(const std::string& what, const std::string& hint);

    Scene scene;
    const Answer& answer;
    const ViewState& state;
    Frame body;  ///< What is left for the picture.
};

[[nodiscard]] std::string number(const char* format, double value);
[[nodiscard]] std::string percent(double share);
[[nodiscard]] std::string grouped(std::uint64_t value);
/// "12 ms" on axes: without trailing zeros.
[[nodiscard]] std::string time_text(double seconds);
/// Three significant digits: "1.18 TB".
[[nodiscard]] std::string size_text(double bytes);
/// A rough width of a text, to lay out by; pictures never depend on a font's own measures.
[[nodiscard]] double text_width(const std::string& text, double size = 12.0);
/// The first that fits, of texts that get shorter; the last where none does.
[[nodiscard]] std::string longest(const std::vector<std::string>& texts, double room, double size = 11.0);
/// The text in lines no wider than the room, at most `most`; the last one takes what is left.
[[nodiscard]] std::vector<std::string> wrapped(const std::string& text, double room, double size, std::size_t most);
/// "reshard (hybrid), 2.86 s simulated".
[[nodiscard]] std::string headline_of(const Shown& shown);
/// "20.1 TB on NICs, 14.3 TB on NVLink".
[[nodiscard]] std::string bytes_text(const PairFlow& flow);

inline constexpr std::uint32_t kMostGroups = 64;  ///< Of a two-column picture, and of a matrix with words in it.
/// "12 %".
[[nodiscard]] std::string share_text(std::uint64_t part, std::uint64_t whole);
/// Which flows the filter keeps; empty: all.
[[nodiscard]] std::vector<std::uint8_t> flow_mask_of(const Answer& answer, const ViewState& state);
/// The line below a title over flows: grouping, bytes, and the answer's headline.
[[nodiscard]] std::string flows_line(const Answer& answer, const ViewState& state, const PairFlow& total);
[[nodiscard]] Scene no_flow_fits(Canvas canvas, const std::string& title);
/// The matrix, for whichever view; `hint` ends the line below its title.
[[nodiscard]] Scene matrix_of(Canvas canvas, const std::string& title, const std::string& hint);

/// The critical path as stretches of colour.
void add_critical_path(Scene& scene, const Simulation& run, const TimeScale& scale, const Frame& row);
/// Colour and pattern of an activity.
[[nodiscard]] Paint paint_of(Activity activity);
[[nodiscard]] Pattern pattern_of(Activity activity);

Scene layout_view(Canvas canvas);
Scene flows_view(Canvas canvas);
Scene matrix_view(Canvas canvas);
Scene timeline_view(Canvas canvas);
Scene links_view(Canvas canvas);
Scene compare_view(Canvas canvas);
Scene table_view(Canvas canvas);

}  // namespace refit::gui
