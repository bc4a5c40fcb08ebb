// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <QImage>
#include <QWidget>

#include "paint.hpp"
#include "refit/gui/scene.hpp"
#include "refit/gui/worker.hpp"

namespace refit::gui {

/// Shows a scene that a worker lays out and paints; the window's thread only copies pixels and outlines elements.
class SceneView : public QWidget {
public:
    /// Makes the scene for a size in logical pixels; runs on the worker, so it must own what it needs.
    using Build = std::function<Scene(double width, double height)>;

    explicit SceneView(QWidget* parent = nullptr);
    ~SceneView() override;

    /// Shows what `build` makes; the present picture stays until then.
    void show_scene(Build build);
    void set_style(const PaintStyle& style);
    /// The element of this target is outlined.
    void set_selection(const Target& target);
    /// Waits until the picture is that of the latest scene.
    void finish();

    [[nodiscard]] const Scene& scene() const noexcept { return *scene_; }
    [[nodiscard]] Target selection() const noexcept { return selection_; }
    [[nodiscard]] std::optional<std::size_t> focused() const noexcept { return focused_; }
    /// Moves the keyboard's place among the elements by a number of them.
    void step(int by);
    /// Selects the element that the keyboard is at.
    void select_focused();

    // What the window does about it; each may be empty.
    std::function<void(const Target&)> on_select;
    std::function<void(const Target&)> on_drill;  ///< Double click.
    std::function<void()> on_rise;                ///< Backspace.
    std::function<void(double factor, double about)> on_zoom;  ///< `about`: share of the time axis. Range: 0 to 1.
    std::function<void(double share)> on_pan;
    std::function<void(double from, double to)> on_range;      ///< Shares of the time axis that were dragged over.
    std::function<void(double pixels)> on_scroll;
    std::function<void()> on_painted;

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override;

private:
    struct Picture {
        std::shared_ptr<const Scene> scene;
        QImage image;
    };

    void rebuild();
    void update_element(std::optional<std::size_t> element);
    void take(Picture picture);
    [[nodiscard]] double share_of(double x) const;

    std::shared_ptr<const Scene> scene_;
    QImage image_;
    Build build_;
    PaintStyle style_;
    Target selection_;
    std::optional<std::size_t> hovered_;
    std::optional<std::size_t> focused_;
    std::optional<double> drag_from_;
    double drag_to_ = 0.0;
    bool is_panning_ = false;
    Worker worker_;  // Last: its thread ends before what it paints for.
};

/// Tells assistive technology about the elements of scenes. Call once.
void install_scene_accessibility();

}  // namespace refit::gui
