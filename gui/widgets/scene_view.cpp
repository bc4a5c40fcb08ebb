// SPDX-License-Identifier: Apache-2.0
#include "scene_view.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <QAccessibleWidget>
#include <QCoreApplication>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPointer>
#include <QToolTip>
#include <QWheelEvent>

namespace refit::gui {
namespace {

constexpr double kDragStart = 5.0;

/// One element of a scene, as a screen reader sees it.
class ElementAccess final : public QAccessibleInterface {
public:
    ElementAccess(SceneView* view, std::size_t index) : view_{view}, index_{index} {}

    [[nodiscard]] bool isValid() const override { return view_ != nullptr && index_ < view_->scene().elements.size(); }
    [[nodiscard]] QObject* object() const override { return nullptr; }
    [[nodiscard]] QAccessibleInterface* childAt(int, int) const override { return nullptr; }
    [[nodiscard]] QAccessibleInterface* parent() const override { return QAccessible::queryAccessibleInterface(view_); }
    [[nodiscard]] QAccessibleInterface* child(int) const override { return nullptr; }
    [[nodiscard]] int childCount() const override { return 0; }
    [[nodiscard]] int indexOfChild(const QAccessibleInterface*) const override { return -1; }
    [[nodiscard]] QString text(QAccessible::Text kind) const override {
        return isValid() && kind == QAccessible::Name ? QString::fromStdString(view_->scene().elements[index_].name) : QString{};
    }
    void setText(QAccessible::Text, const QString&) override {}
    [[nodiscard]] QRect rect() const override {
        if (!isValid()) {
            return {};
        }
        const auto& frame = view_->scene().elements[index_].frame;
        return QRectF{frame.x, frame.y, frame.width, frame.height}.toAlignedRect().translated(view_->mapToGlobal(QPoint{0, 0}));
    }
    [[nodiscard]] QAccessible::Role role() const override { return QAccessible::ListItem; }
    [[nodiscard]] QAccessible::State state() const override {
        QAccessible::State state;
        state.selectable = true;
        state.focusable = true;
        if (isValid()) {
            state.selected = view_->scene().elements[index_].target == view_->selection() && view_->selection().is_set();
            state.focused = view_->focused() == index_;
        }
        return state;
    }

private:
    QPointer<SceneView> view_;
    std::size_t index_;
};

class SceneAccess final : public QAccessibleWidget {
public:
    explicit SceneAccess(SceneView* view) : QAccessibleWidget{view, QAccessible::List, view->accessibleName()}, view_{view} {}
    ~SceneAccess() override { forget(); }
    SceneAccess(const SceneAccess&) = delete;
    SceneAccess& operator=(const SceneAccess&) = delete;
    SceneAccess(SceneAccess&&) = delete;
    SceneAccess& operator=(SceneAccess&&) = delete;

    [[nodiscard]] int childCount() const override { return static_cast<int>(view_->scene().elements.size()); }
    [[nodiscard]] QAccessibleInterface* child(int index) const override {
        const auto count = view_->scene().elements.size();
        if (index < 0 || static_cast<std::size_t>(index) >= count) {
            return nullptr;
        }
        if (ids_.size() != count) {
            forget();
            ids_.assign(count, 0);
        }
        auto& id = ids_[static_cast<std::size_t>(index)];
        if (id == 0) {
            id = QAccessible::registerAccessibleInterface(new ElementAccess{view_, static_cast<std::size_t>(index)});
        }
        return QAccessible::accessibleInterface(id);
    }
    [[nodiscard]] QAccessibleInterface* childAt(int x, int y) const override {
        const auto at = view_->mapFromGlobal(QPoint{x, y});
        const auto hit = view_->scene().hit({static_cast<double>(at.x()), static_cast<double>(at.y())});
        return hit ? child(static_cast<int>(*hit)) : nullptr;
    }
    [[nodiscard]] QString text(QAccessible::Text kind) const override {
        return kind == QAccessible::Description ? QString::fromStdString(view_->scene().title) : QAccessibleWidget::text(kind);
    }

private:
    void forget() const {
        for (const auto id : ids_) {
            if (id != 0) {
                QAccessible::deleteAccessibleInterface(id);
            }
        }
        ids_.clear();
    }

    SceneView* view_;
    mutable std::vector<QAccessible::Id> ids_;
};

QAccessibleInterface* make_access(const QString&, QObject* object) {
    auto* view = dynamic_cast<SceneView*>(object);
    return view == nullptr ? nullptr : new SceneAccess{view};
}

}  // namespace

void install_scene_accessibility() { QAccessible::installFactory(make_access); }

SceneView::SceneView(QWidget* parent) : QWidget{parent}, scene_{std::make_shared<Scene>()} {
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
    setMinimumSize(200, 40);
    setAttribute(Qt::WA_OpaquePaintEvent);
}

SceneView::~SceneView() = default;

void SceneView::show_scene(Build build) {
    build_ = std::move(build);
    rebuild();
}

void SceneView::set_style(const PaintStyle& style) {
    style_ = style;
    rebuild();
}

void SceneView::set_selection(const Target& target) {
    selection_ = target;
    update();
}

void SceneView::rebuild() {
    if (!build_ || width() < 1 || height() < 1) {
        return;
    }
    const auto scale = devicePixelRatioF();
    worker_.post([this, build = build_, style = style_, scale, width = static_cast<double>(width()), height = static_cast<double>(height())](const Worker::IsStale& is_stale) {
        auto scene = std::make_shared<const Scene>(build(width, height));
        // A rough picture at once, a smooth one when nothing newer waits.
        for (const bool is_draft : {true, false}) {
            if (is_stale()) {
                return;
            }
            auto how = style;
            how.is_draft = is_draft;
            Picture picture{scene, to_image(*scene, how, scale)};
            QMetaObject::invokeMethod(this, [this, is_stale, picture = std::move(picture)]() mutable {
                if (!is_stale()) {
                    take(std::move(picture));
                }
            }, Qt::QueuedConnection);
        }
    });
}

void SceneView::take(Picture picture) {
    const bool is_new = picture.scene != scene_;
    scene_ = std::move(picture.scene);
    image_ = std::move(picture.image);
    if (is_new) {
        hovered_.reset();
        if (focused_ && *focused_ >= scene_->elements.size()) {
            focused_.reset();
        }
    }
    update();
    if (on_painted) {
        on_painted();
    }
}

void SceneView::finish() {
    worker_.finish();
    QCoreApplication::sendPostedEvents(this);
}

void SceneView::paintEvent(QPaintEvent*) {
    QPainter painter{this};
    if (image_.isNull() || image_.deviceIndependentSize().width() < width() || image_.deviceIndependentSize().height() < height()) {
        painter.fillRect(rect(), to_color(colour_of(style_.theme, Ink::kBackground)));
    }
    if (!image_.isNull()) {
        painter.drawImage(QPointF{0.0, 0.0}, image_);
    }
    const auto outline = [&](std::optional<std::size_t> element, Ink ink, double thickness) {
        if (element && *element < scene_->elements.size()) {
            paint_element(painter, *scene_, *element, ink, thickness, style_.theme);
        }
    };
    outline(hovered_, Ink::kText, 1.5);
    if (selection_.is_set()) {
        std::size_t drawn = 0;
        for (std::size_t i = 0; i < scene_->elements.size() && drawn < 20; ++i) {
            if (scene_->elements[i].target == selection_) {
                outline(i, Ink::kAccent, 3.0);
                ++drawn;
            }
        }
    }
    if (hasFocus()) {
        outline(focused_, Ink::kCritical, 2.5);
        painter.setPen(QPen{to_color(colour_of(style_.theme, Ink::kAccent)), 2.0});
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(QRectF{1.0, 1.0, width() - 2.0, height() - 2.0});
    }
    if (drag_from_ && !is_panning_ && scene_->time_area) {
        const auto left = std::min(*drag_from_, drag_to_);
        painter.fillRect(QRectF{left, scene_->time_area->y, std::abs(drag_to_ - *drag_from_), scene_->time_area->height}, to_color(colour_of(style_.theme, Ink::kAccent), 0.25));
    }
}

/// Only what an outline covers is painted anew: that is what keeps a pointer's moves cheap.
void SceneView::update_element(std::optional<std::size_t> element) {
    if (element && *element < scene_->elements.size()) {
        const auto& frame = scene_->elements[*element].frame;
        update(QRectF{frame.x, frame.y, frame.width, frame.height}.adjusted(-4.0, -4.0, 4.0, 4.0).toAlignedRect());
    }
}

void SceneView::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    rebuild();
}

double SceneView::share_of(double x) const {
    const auto& area = scene_->time_area;
    return area && area->width > 0.0 ? std::clamp((x - area->x) / area->width, 0.0, 1.0) : 0.5;
}

void SceneView::mouseMoveEvent(QMouseEvent* event) {
    const auto at = event->position();
    if (drag_from_) {
        if (is_panning_ && on_pan && scene_->time_area) {
            on_pan((*drag_from_ - at.x()) / scene_->time_area->width);
            drag_from_ = at.x();
        }
        drag_to_ = at.x();
        update();
        return;
    }
    const auto hit = scene_->hit({at.x(), at.y()});
    if (hit != hovered_) {
        update_element(hovered_);
        hovered_ = hit;
        setCursor(hit ? Qt::PointingHandCursor : Qt::ArrowCursor);
        update_element(hovered_);
    }
}

void SceneView::mousePressEvent(QMouseEvent* event) {
    setFocus(Qt::MouseFocusReason);
    if (event->button() == Qt::LeftButton && scene_->time_area) {
        drag_from_ = drag_to_ = event->position().x();
        is_panning_ = event->modifiers().testFlag(Qt::ShiftModifier);
    }
}

void SceneView::mouseReleaseEvent(QMouseEvent* event) {
    const auto at = event->position();
    const auto from = std::exchange(drag_from_, std::nullopt);
    if (from && std::abs(at.x() - *from) > kDragStart && !is_panning_) {
        if (on_range) {
            on_range(share_of(std::min(*from, at.x())), share_of(std::max(*from, at.x())));
        }
        update();
        return;
    }
    if (event->button() == Qt::LeftButton && !is_panning_ && on_select) {
        focused_ = scene_->hit({at.x(), at.y()});
        on_select(scene_->target_at({at.x(), at.y()}));
    }
    is_panning_ = false;
    update();
}

void SceneView::mouseDoubleClickEvent(QMouseEvent* event) {
    const auto target = scene_->target_at({event->position().x(), event->position().y()});
    if (on_drill && target.is_set()) {
        on_drill(target);
    }
}

void SceneView::leaveEvent(QEvent*) {
    update_element(hovered_);
    hovered_.reset();
}

void SceneView::wheelEvent(QWheelEvent* event) {
    const auto steps = event->angleDelta().y() / 120.0;
    if (event->modifiers().testFlag(Qt::ControlModifier)) {
        if (on_zoom) {
            on_zoom(std::pow(0.8, steps), share_of(event->position().x()));
        }
    } else if (on_scroll) {
        on_scroll(-steps * 42.0);
    }
    event->accept();
}

void SceneView::step(int by) {
    const auto count = static_cast<std::ptrdiff_t>(scene_->elements.size());
    if (count == 0) {
        return;
    }
    update_element(focused_);
    auto at = focused_ ? static_cast<std::ptrdiff_t>(*focused_) + by : by > 0 ? 0 : count - 1;
    at = (at % count + count) % count;
    focused_ = static_cast<std::size_t>(at);
    update_element(focused_);
    QAccessibleEvent focus{this, QAccessible::Focus};
    focus.setChild(static_cast<int>(at));
    QAccessible::updateAccessibility(&focus);
}

void SceneView::select_focused() {
    if (focused_ && *focused_ < scene_->elements.size() && on_select) {
        on_select(scene_->elements[*focused_].target);
    }
}

void SceneView::keyPressEvent(QKeyEvent* event) {
    switch (event->key()) {
        case Qt::Key_Right:
        case Qt::Key_Down:
            step(1);
            break;
        case Qt::Key_Left:
        case Qt::Key_Up:
            step(-1);
            break;
        case Qt::Key_Return:
        case Qt::Key_Enter:
            select_focused();
            break;
        case Qt::Key_Backspace:
            if (on_rise) {
                on_rise();
            }
            break;
        default:
            QWidget::keyPressEvent(event);
    }
}

bool SceneView::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const auto hit = scene_->hit({static_cast<double>(help->pos().x()), static_cast<double>(help->pos().y())});
        hit ? QToolTip::showText(help->globalPos(), QString::fromStdString(scene_->elements[*hit].name), this) : QToolTip::hideText();
        return true;
    }
    return QWidget::event(event);
}

}  // namespace refit::gui
