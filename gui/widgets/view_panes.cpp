// SPDX-License-Identifier: Apache-2.0
#include "view_panes.hpp"

#include <QApplication>
#include <QComboBox>
#include <QEvent>
#include <QPalette>
#include <QSignalBlocker>
#include <QTabBar>
#include <QVBoxLayout>

#include "paint.hpp"
#include "scene_view.hpp"
#include "text.hpp"

namespace refit::gui {

ViewPanes::ViewPanes() : QSplitter{Qt::Horizontal} {
    setChildrenCollapsible(false);
    panes_[0] = make_pane(0);
    panes_[1] = make_pane(1);
    panes_[1].box->hide();
    connect(qApp, &QApplication::focusChanged, this, [this](QWidget*, QWidget* now) {
        for (const std::size_t pane : {0U, 1U}) {
            if (panes_[pane].box->isAncestorOf(now)) {
                activate(pane);
            }
        }
    });
}

ViewPanes::Pane ViewPanes::make_pane(std::size_t number) {
    const auto name = number == 0 ? QStringLiteral("Picture") : QStringLiteral("Picture beside");
    Pane pane{new QWidget, new QTabBar, new QComboBox, new QWidget, new SceneView};
    auto* column = new QVBoxLayout{pane.box};
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(pane.tabs);
    column->addWidget(pane.list);
    column->addWidget(pane.mark);
    column->addWidget(pane.picture, 1);
    pane.tabs->setAccessibleName(QStringLiteral("Views of ") + name.toLower());
    pane.tabs->setExpanding(false);
    pane.tabs->setDocumentMode(true);
    for (const auto one : kViews) {
        pane.tabs->addTab(text(title_of(one)));
        pane.list->addItem(text(title_of(one)));
    }
    pane.list->setAccessibleName(QStringLiteral("View of ") + name.toLower());
    pane.list->hide();
    pane.box->installEventFilter(this);
    pane.mark->setFixedHeight(3);
    pane.mark->setAutoFillBackground(true);
    pane.mark->hide();
    pane.picture->setAccessibleName(name);
    addWidget(pane.box);
    connect(pane.tabs, &QTabBar::currentChanged, this, [this, number](int index) { choose(number, index); });
    connect(pane.list, &QComboBox::activated, this, [this, number](int index) { choose(number, index); });
    return pane;
}

void ViewPanes::choose(std::size_t pane, int index) const {
    if (on_view) {
        on_view(pane, static_cast<View>(index));
    }
}

bool ViewPanes::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::Resize) {
        for (const auto& pane : panes_) {
            if (pane.box == watched) {
                const bool has_room = pane.box->width() >= pane.tabs->sizeHint().width();
                pane.tabs->setVisible(has_room);
                pane.list->setVisible(!has_room);
            }
        }
    }
    return QSplitter::eventFilter(watched, event);
}

void ViewPanes::show_second(bool is_shown) {
    const bool is_new = is_shown && !has_second_;
    has_second_ = is_shown;
    panes_[1].box->setVisible(is_shown);
    if (is_new) {
        setSizes({width() / 2, width() / 2});
    }
    activate(is_shown ? active_ : 0);
}

void ViewPanes::activate(std::size_t pane) {
    active_ = pane;
    show_marks();
}

void ViewPanes::show_tab(std::size_t pane, View view) {
    const QSignalBlocker blocked{panes_.at(pane).tabs};
    panes_.at(pane).tabs->setCurrentIndex(static_cast<int>(view));
    panes_.at(pane).list->setCurrentIndex(static_cast<int>(view));
}

void ViewPanes::set_theme(Theme theme) {
    theme_ = theme;
    show_marks();
}

void ViewPanes::show_marks() {
    for (const std::size_t pane : {0U, 1U}) {
        auto* mark = panes_[pane].mark;
        auto palette = mark->palette();
        palette.setColor(QPalette::Window,
                         to_color(colour_of(theme_, is_marked(pane) ? Ink::kAccent : Ink::kPanel)));
        mark->setPalette(palette);
        mark->setToolTip(is_marked(pane) ? QStringLiteral("Commands act on this view; F6 goes to the other")
                                         : QString{});
        mark->setVisible(has_second_);
    }
}

}  // namespace refit::gui
