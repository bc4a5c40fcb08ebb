// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "refit/gui/answer.hpp"
#include "refit/gui/filter.hpp"
#include "refit/gui/scene.hpp"

namespace refit::gui {

/// The pictures of a refit.
enum class View : std::uint8_t { kLayout, kFlows, kMatrix, kTimeline, kLinks, kCompare, kTable };
inline constexpr std::array kViews{View::kLayout, View::kFlows, View::kMatrix, View::kTimeline, View::kLinks, View::kCompare, View::kTable};

/// "layout", "flows", "matrix", "timeline", "links", "compare", "table".
[[nodiscard]] std::string_view name_of(View view) noexcept;
/// Errors: kInvalidInput naming the nearest.
[[nodiscard]] Result<View> parse_view(std::string_view text);
/// "Layout" … for tabs.
[[nodiscard]] std::string_view title_of(View view) noexcept;

/// What the table view lists.
enum class Listing : std::uint8_t { kPairs, kRanks, kTensors, kLinks, kLanes, kMethods };
inline constexpr std::array kListings{Listing::kPairs, Listing::kRanks, Listing::kTensors, Listing::kLinks, Listing::kLanes, Listing::kMethods};
[[nodiscard]] std::string_view title_of(Listing listing) noexcept;

/// How a refit is looked at; shared by all views.
struct ViewState {
    View view = View::kLayout;
    std::optional<Grouping> grouping;  ///< Nothing: as fine as the view can show well.
    Direction direction = Direction::kAll;
    std::uint32_t top = 200;           ///< Most ribbons; the rest is drawn as "other".
    Filter filter;
    std::optional<TimeWindow> window;  ///< Nothing: all of the time.
    Target selection;
    std::uint32_t tensor = 0xffffffff; ///< Whose cuts the layout shows; by default the largest class.
    std::optional<double> now;         ///< While the transfer is played. Unit: s.
    Listing listing = Listing::kPairs;
    double scroll = 0.0;               ///< Of rows that do not fit. Range: 0 or more, pixels.
    bool shows_only_differences = false;  ///< Of A and B, side by side.
    bool has_footer = false;           ///< For files: version and units under the picture.
    bool operator==(const ViewState&) const = default;
};

/// The grouping that the view uses: the one that was asked for, or one that fits.
[[nodiscard]] Grouping grouping_of(const Answer& answer, const ViewState& state) noexcept;

/// Paints any view into `width` times `height` logical pixels. Cost: in flows, tasks and pixels.
[[nodiscard]] Scene make_scene(const Answer& answer, const ViewState& state, double width, double height);

/// What to show in place of a picture: a headline, then lines.
[[nodiscard]] Scene make_message(const std::string& headline, const std::vector<std::string>& lines, double width, double height);

/// The course on the strip below all views, with the window marked.
[[nodiscard]] Scene make_strip(const Answer& answer, const ViewState& state, double width, double height);

}  // namespace refit::gui
