// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <functional>

#include <QSplitter>

#include "refit/gui/theme.hpp"
#include "refit/gui/views.hpp"

class QComboBox;
class QTabBar;

namespace refit::gui {

class SceneView;

/// One picture, or two side by side, each below a tab for each view, or a list of views where tabs have no
/// room. Commands act on the active one, that which had the focus last; where there are two, a bar between
/// tabs and picture marks it. Panes: 0, and 1 beside it.
class ViewPanes : public QSplitter {
public:
    ViewPanes();

    void show_second(bool is_shown);
    /// Pre: pane 1 is shown, or `pane` is 0.
    void activate(std::size_t pane);
    /// Marks the tab of a view; tells nobody.
    void show_tab(std::size_t pane, View view);
    void set_theme(Theme theme);

    [[nodiscard]] std::size_t active() const noexcept { return active_; }
    [[nodiscard]] SceneView& picture(std::size_t pane) const { return *panes_.at(pane).picture; }
    [[nodiscard]] bool is_marked(std::size_t pane) const noexcept { return has_second_ && pane == active_; }

    std::function<void(std::size_t pane, View view)> on_view;  ///< A tab was chosen.

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    struct Pane {
        QWidget* box = nullptr;
        QTabBar* tabs = nullptr;
        QComboBox* list = nullptr;
        QWidget* mark = nullptr;
        SceneView* picture = nullptr;
    };
    [[nodiscard]] Pane make_pane(std::size_t number);
    void choose(std::size_t pane, int index) const;
    void show_marks();

    std::array<Pane, 2> panes_;
    std::size_t active_ = 0;
    bool has_second_ = false;
    Theme theme_ = Theme::kLight;
};

}  // namespace refit::gui
