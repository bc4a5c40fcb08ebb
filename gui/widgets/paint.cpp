// SPDX-License-Identifier: Apache-2.0
#include "paint.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>

#include <QColor>
#include <QFont>
#include <QFontMetricsF>
#include <QImage>
#include <QPainter>
#include <QPainterPath>
#include <QPolygonF>

#ifdef Q_OS_UNIX
#include <sys/mman.h>
#endif

namespace refit::gui {
namespace {

QRectF rect(const Frame& frame) { return {frame.x, frame.y, frame.width, frame.height}; }

QPainterPath path_of(const RibbonMark& ribbon) {
    const auto left = ribbon.from.right();
    const auto right = ribbon.to.x;
    const auto middle = (left + right) / 2.0;
    QPainterPath path{{left, ribbon.from.y}};
    path.cubicTo({middle, ribbon.from.y}, {middle, ribbon.to.y}, {right, ribbon.to.y});
    path.lineTo(right, ribbon.to.bottom());
    path.cubicTo({middle, ribbon.to.bottom()}, {middle, ribbon.from.bottom()}, {left, ribbon.from.bottom()});
    path.closeSubpath();
    return path;
}

QPolygonF polygon(const std::vector<Point>& points) {
    QPolygonF polygon;
    polygon.reserve(static_cast<qsizetype>(points.size()));
    for (const auto& point : points) {
        polygon << QPointF{point.x, point.y};
    }
    return polygon;
}

Qt::BrushStyle brush_of(Pattern pattern) {
    switch (pattern) {
        case Pattern::kHatch:
            return Qt::BDiagPattern;
        case Pattern::kDots:
            return Qt::Dense6Pattern;
        case Pattern::kCross:
            return Qt::DiagCrossPattern;
        case Pattern::kSolid:
            break;
    }
    return Qt::SolidPattern;
}

class ScenePainter {
public:
    ScenePainter(QPainter& painter, const PaintStyle& style) : painter_{painter}, style_{style} {}

    void operator()(const RectMark& mark) const {
        const auto frame = rect(mark.frame);
        if (frame.width() <= 0.0 || frame.height() <= 0.0) {
            return;
        }
        const bool is_plain = mark.radius <= 0.0 || std::min(frame.width(), frame.height()) < 1.9 * mark.radius || style_.is_draft;
        if (mark.fill.ink != Ink::kNone) {
            if (is_plain) {
                painter_.fillRect(frame, color(mark.fill));
            } else {
                painter_.setPen(Qt::NoPen);
                painter_.setBrush(color(mark.fill));
                painter_.drawRoundedRect(frame, mark.radius, mark.radius);
            }
            if (mark.pattern != Pattern::kSolid) {
                painter_.fillRect(frame, QBrush{pattern_color(mark.fill), brush_of(mark.pattern)});
            }
        }
        if (mark.stroke.ink != Ink::kNone) {
            painter_.setPen(pen(mark.stroke, mark.stroke_width, mark.is_dashed));
            painter_.setBrush(Qt::NoBrush);
            is_plain ? painter_.drawRect(frame) : painter_.drawRoundedRect(frame, mark.radius, mark.radius);
        }
    }

    void operator()(const RibbonMark& mark) const {
        const auto path = path_of(mark);
        painter_.fillPath(path, color(mark.fill));
        if (mark.pattern != Pattern::kSolid && !style_.is_draft && std::max(mark.from.height, mark.to.height) > 5.0) {
            painter_.fillPath(path, QBrush{pattern_color(mark.fill), brush_of(mark.pattern)});
        }
    }

    void operator()(const LineMark& mark) const {
        painter_.setPen(pen(mark.stroke, mark.width, mark.is_dashed));
        painter_.setBrush(Qt::NoBrush);
        painter_.drawPolyline(polygon(mark.points));
    }

    void operator()(const AreaMark& mark) const {
        painter_.setPen(Qt::NoPen);
        painter_.setBrush(color(mark.fill));
        painter_.drawPolygon(polygon(mark.points));
    }

    void operator()(const TextMark& mark) const {
        QFont font{font_family()};
        font.setPixelSize(std::max(6, static_cast<int>(std::lround(mark.size * style_.text_scale))));
        font.setBold(mark.is_bold);
        painter_.setFont(font);
        painter_.setPen(mark.on ? to_color(text_on(seen(*mark.on, style_.theme))) : color(mark.paint));
        auto frame = rect(mark.frame);
        const auto flags = Qt::AlignVCenter | (mark.align == Align::kLeft ? Qt::AlignLeft : mark.align == Align::kRight ? Qt::AlignRight : Qt::AlignHCenter);
        const auto room = mark.is_upward ? frame.height() : frame.width();
        const auto text = QFontMetricsF{font}.elidedText(QString::fromStdString(mark.text), Qt::ElideRight, room + 0.5);
        if (mark.is_upward) {
            painter_.save();
            painter_.translate(frame.left(), frame.bottom());
            painter_.rotate(-90.0);
            painter_.drawText(QRectF{0.0, 0.0, frame.height(), frame.width()}, static_cast<int>(flags | Qt::TextDontClip), text);
            painter_.restore();
            return;
        }
        painter_.drawText(frame, static_cast<int>(flags | Qt::TextDontClip), text);
    }

    void operator()(const HeatMark& mark) const {
        if (mark.rows == 0 || mark.columns == 0) {
            return;
        }
        // A grid may have a million cells: their colours come from a table.
        constexpr std::size_t kColours = 256;
        std::array<QRgb, kColours> colours{};
        for (std::size_t i = 0; i < kColours; ++i) {
            const auto colour = heat_of(style_.theme, static_cast<double>(i) / (kColours - 1));
            colours[i] = qRgb(colour.red, colour.green, colour.blue);
        }
        const auto panel = colour_of(style_.theme, Ink::kPanel);
        const auto empty = qRgb(panel.red, panel.green, panel.blue);
        QImage image{static_cast<int>(mark.columns), static_cast<int>(mark.rows), QImage::Format_RGB32};
        for (std::uint32_t row = 0; row < mark.rows; ++row) {
            auto* line = reinterpret_cast<QRgb*>(image.scanLine(static_cast<int>(row)));
            for (std::uint32_t column = 0; column < mark.columns; ++column) {
                const auto share = mark.shares[static_cast<std::size_t>(row) * mark.columns + column];
                line[column] = share < 0.0F ? empty : colours[static_cast<std::size_t>(std::min(1.0F, share) * (kColours - 1) + 0.5F)];
            }
        }
        painter_.drawImage(rect(mark.frame), image);
    }

private:
    [[nodiscard]] QColor color(const Paint& paint) const {
        return to_color(paint.heat ? heat_of(style_.theme, *paint.heat) : colour_of(style_.theme, paint.ink), paint.alpha);
    }
    /// A pattern is seen as lines of black or white over the fill.
    [[nodiscard]] QColor pattern_color(const Paint& paint) const {
        auto line = to_color(text_on(seen(paint, style_.theme)));
        line.setAlphaF(0.32F * static_cast<float>(std::min(1.0, paint.alpha * 1.6)));
        return line;
    }
    [[nodiscard]] QPen pen(const Paint& paint, double width, bool is_dashed) const {
        QPen pen{color(paint), width};
        pen.setCosmetic(false);
        pen.setJoinStyle(Qt::MiterJoin);
        if (is_dashed) {
            pen.setDashPattern({4.0, 3.0});
        }
        return pen;
    }

    QPainter& painter_;
    const PaintStyle& style_;
};

/// Its memory goes back to the system as soon as it is dropped. The C library would keep some of it for each thread
/// that ever painted: 40 MB after a few windows.
QImage image_of_pages(int width, int height) {
#ifdef Q_OS_UNIX
    struct Pages {
        void* start;
        std::size_t size;
    };
    const auto size = static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * sizeof(QRgb);
    auto* start = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start != MAP_FAILED) {
        const auto give_back = [](void* what) {
            const std::unique_ptr<Pages> pages{static_cast<Pages*>(what)};
            munmap(pages->start, pages->size);
        };
        return {static_cast<uchar*>(start), width, height, static_cast<qsizetype>(width) * qsizetype{sizeof(QRgb)}, QImage::Format_RGB32,
                give_back, std::make_unique<Pages>(Pages{start, size}).release()};
    }
#endif
    return {width, height, QImage::Format_RGB32};
}

}  // namespace

QString font_family() { return QStringLiteral("DejaVu Sans"); }

QColor to_color(Rgb colour, double alpha) {
    return {colour.red, colour.green, colour.blue, static_cast<int>(std::lround(255.0 * alpha))};
}

Rgb seen(const Paint& paint, Theme theme) {
    const auto own = paint.heat ? heat_of(theme, *paint.heat) : colour_of(theme, paint.ink);
    return mixed(own, colour_of(theme, Ink::kBackground), paint.alpha);
}

void paint(QPainter& painter, const Scene& scene, const PaintStyle& style) {
    if (style.has_background) {
        painter.fillRect(QRectF{0.0, 0.0, scene.width, scene.height}, to_color(colour_of(style.theme, Ink::kBackground)));
    }
    painter.setRenderHint(QPainter::Antialiasing, !style.is_draft);
    painter.setRenderHint(QPainter::TextAntialiasing, true);
    const ScenePainter painted{painter, style};
    for (const auto& mark : scene.marks) {
        std::visit(painted, mark);
    }
}

void paint_element(QPainter& painter, const Scene& scene, std::size_t element, Ink ink, double width, Theme theme) {
    const auto& what = scene.elements[element];
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen{to_color(colour_of(theme, ink)), width});
    painter.setBrush(Qt::NoBrush);
    for (const auto mark : what.marks) {
        if (const auto* ribbon = std::get_if<RibbonMark>(&scene.marks[mark])) {
            painter.drawPath(path_of(*ribbon));
            return;
        }
    }
    painter.drawRect(rect(what.frame).adjusted(-0.5, -0.5, 0.5, 0.5));
}

QImage to_image(const Scene& scene, const PaintStyle& style, double scale) {
    auto image = image_of_pages(std::max(1, static_cast<int>(std::lround(scene.width * scale))), std::max(1, static_cast<int>(std::lround(scene.height * scale))));
    image.setDevicePixelRatio(scale);
    QPainter painter{&image};
    paint(painter, scene, style);
    return image;
}

}  // namespace refit::gui
