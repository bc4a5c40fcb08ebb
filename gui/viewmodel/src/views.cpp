// SPDX-License-Identifier: Apache-2.0
#include "refit/gui/views.hpp"

#include <algorithm>
#include <utility>

#include "canvas.hpp"
#include "refit/suggest.hpp"

namespace refit::gui {

std::string_view name_of(View view) noexcept {
    constexpr std::array<std::string_view, kViews.size()> kNames{"layout", "flows", "matrix", "timeline", "links", "compare", "table"};
    return kNames[static_cast<std::size_t>(view)];
}

std::string_view title_of(View view) noexcept {
    constexpr std::array<std::string_view, kViews.size()> kTitles{"Layout", "Flows", "Matrix", "Timeline", "Links", "Compare", "Table"};
    return kTitles[static_cast<std::size_t>(view)];
}

std::string_view title_of(Listing listing) noexcept {
    constexpr std::array<std::string_view, kListings.size()> kTitles{"who sends to whom", "GPUs", "tensors", "links", "lanes", "methods"};
    return kTitles[static_cast<std::size_t>(listing)];
}

Result<View> parse_view(std::string_view text) {
    std::vector<std::string> names;
    for (const auto view : kViews) {
        if (name_of(view) == text) {
            return view;
        }
        names.emplace_back(name_of(view));
    }
    return fail(ErrorCode::kInvalidInput, "unknown-view",
                "unknown view '" + std::string{text} + "'; did you mean '" + nearest_name(text, names) + "'? There are " + join_names(names), "--export");
}

Grouping grouping_of(const Answer& answer, const ViewState& state) noexcept {
    if (state.grouping) {
        return *state.grouping;
    }
    // Stages and engines say most; where there are few of them, finer groups fit too.
    const auto most = state.view == View::kFlows ? 26U : 34U;
    const auto grouping = finest(answer.groups, most);
    const auto stages = answer.by(Grouping::kStage).count();
    return grouping < Grouping::kStage && stages <= 64 ? Grouping::kStage : grouping;
}

Scene make_message(const std::string& headline, const std::vector<std::string>& lines, double width, double height) {
    Scene scene;
    scene.width = width;
    scene.height = height;
    scene.title = headline;
    std::vector<std::string> shown;
    for (const auto& line : lines) {
        for (auto& part : wrapped(line, width - 64.0, 13.0, 8)) {
            shown.push_back(std::move(part));
        }
    }
    constexpr double kLine = 22.0;
    const auto fits = static_cast<std::size_t>(std::max(1.0, (height - 80.0) / kLine));
    if (shown.size() > fits) {
        const auto hidden = shown.size() - fits + 1;
        shown.resize(fits - 1);
        shown.push_back("and " + grouped(hidden) + " lines more");
    }
    auto y = std::max(16.0, height / 2.0 - kLine / 2.0 * static_cast<double>(shown.size()) - 30.0);
    scene.text({32.0, y, width - 64.0, 24.0}, headline, Ink::kText, Align::kCentre, 17.0, true);
    y += 36.0;
    for (const auto& line : shown) {
        scene.text({32.0, y, width - 64.0, 20.0}, line, Ink::kMuted, Align::kCentre, 13.0);
        y += kLine;
    }
    scene.elements.push_back({{}, headline, {32.0, 16.0, width - 64.0, height - 32.0}, {}});
    for (const auto& line : lines) {
        scene.elements.back().name += "; " + line;
    }
    return scene;
}

Scene make_scene(const Answer& answer, const ViewState& state, double width, double height) {
    if (answer.a.is_refused() && state.view != View::kCompare && state.view != View::kTable && state.view != View::kLayout) {
        std::vector<std::string> lines;
        for (const auto& fault : answer.a.report.refused) {
            lines.push_back(fault.message + "  [" + fault.rule + "]");
            if (fault.nearest) {
                lines.push_back("try " + fault.nearest->field + " = " + fault.nearest->value);
            }
        }
        return make_message(title_of(answer.a.report.method) + " cannot run here", lines, width, height);
    }
    Canvas canvas{answer, state, width, height};
    switch (state.view) {
        case View::kLayout:
            return layout_view(std::move(canvas));
        case View::kFlows:
            return flows_view(std::move(canvas));
        case View::kMatrix:
            return matrix_view(std::move(canvas));
        case View::kTimeline:
            return timeline_view(std::move(canvas));
        case View::kLinks:
            return links_view(std::move(canvas));
        case View::kCompare:
            return compare_view(std::move(canvas));
        case View::kTable:
            break;
    }
    return table_view(std::move(canvas));
}

}  // namespace refit::gui
