// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "refit/gui/scene.hpp"
#include "refit/gui/theme.hpp"

class QColor;
class QImage;
class QPainter;
class QString;

namespace refit::gui {

/// Family of all text in pictures.
[[nodiscard]] QString font_family();

/// How a scene is painted.
struct PaintStyle {
    Theme theme = Theme::kLight;
    double text_scale = 1.0;   ///< Of all text. Range: 0.5 to 2.
    bool is_draft = false;     ///< Faster, without smooth edges.
    bool has_background = true;
};

[[nodiscard]] QColor to_color(Rgb colour, double alpha = 1.0);
/// The colour of a paint, as it looks on the theme's background.
[[nodiscard]] Rgb seen(const Paint& paint, Theme theme);

/// Paints a scene: the same for screen, PNG, SVG and PDF. May run on any thread.
void paint(QPainter& painter, const Scene& scene, const PaintStyle& style);

/// Outlines one element: what is under the pointer, selected, or has the focus.
void paint_element(QPainter& painter, const Scene& scene, std::size_t element, Ink ink, double width, Theme theme);

/// The scene at `scale` device pixels a logical one; its memory goes back to the system with the last copy.
[[nodiscard]] QImage to_image(const Scene& scene, const PaintStyle& style, double scale);

}  // namespace refit::gui
