// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "paint.hpp"
#include "refit/gui/views.hpp"

namespace refit::gui {

/// How a picture is written.
struct ExportStyle {
    Theme theme = Theme::kLight;
    double width = 1280.0;  ///< Unit: logical pixels.
    double height = 800.0;
    double scale = 1.0;     ///< Of PNG.
};

/// Writes a view as the file's ending says: .png, .svg, .pdf; .csv of its table, .json the report as `refit compare` gives
/// it, .trace.json the course for ui.perfetto.dev. Pre: a QGuiApplication, for pictures. Errors: kIo; kInvalidInput for
/// another ending.
[[nodiscard]] Result<bool> write_view(const Answer& answer, ViewState state, const std::filesystem::path& file, const ExportStyle& style);

}  // namespace refit::gui
