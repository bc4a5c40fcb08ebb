// SPDX-License-Identifier: Apache-2.0
#include "export.hpp"

#include <string>

#include <QBuffer>
#include <QImage>
#include <QMarginsF>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgGenerator>
#include <nlohmann/json.hpp>

#include "refit/gui/table.hpp"
#include "refit/io/json_file.hpp"
#include "refit/io/report_json.hpp"
#include "refit/io/simulation_json.hpp"
#include "refit/io/trace.hpp"

namespace refit::gui {
namespace {

QByteArray svg_of(const Scene& scene, Theme theme) {
    QByteArray bytes;
    QBuffer buffer{&bytes};
    buffer.open(QIODevice::WriteOnly);
    QSvgGenerator svg;
    svg.setOutputDevice(&buffer);
    svg.setSize({static_cast<int>(scene.width), static_cast<int>(scene.height)});
    svg.setViewBox(QRectF{0.0, 0.0, scene.width, scene.height});
    svg.setTitle(QString::fromStdString(scene.title));
    svg.setDescription(QStringLiteral("Drawn by Refit; sizes in kB, MB, GB and TB are powers of 1000 bytes, rates in GB/s"));
    QPainter painter{&svg};
    paint(painter, scene, {theme});
    painter.end();
    return bytes;
}

QByteArray pdf_of(const Scene& scene, Theme theme) {
    QByteArray bytes;
    QBuffer buffer{&bytes};
    buffer.open(QIODevice::WriteOnly);
    QPdfWriter pdf{&buffer};
    constexpr double kPointsAPixel = 0.75;  // CSS: a pixel is 1/96 inch.
    pdf.setTitle(QString::fromStdString(scene.title));
    pdf.setPageSize(QPageSize{QSizeF{scene.width * kPointsAPixel, scene.height * kPointsAPixel}, QPageSize::Point, {}, QPageSize::ExactMatch});
    pdf.setPageMargins(QMarginsF{0.0, 0.0, 0.0, 0.0});
    pdf.setResolution(96);
    QPainter painter{&pdf};
    paint(painter, scene, {theme});
    painter.end();
    return bytes;
}

QByteArray png_of(const Scene& scene, const ExportStyle& style) {
    auto image = to_image(scene, {style.theme}, style.scale);
    image.setText(QStringLiteral("Title"), QString::fromStdString(scene.title));
    image.setText(QStringLiteral("Software"), QStringLiteral("Refit"));
    QByteArray bytes;
    QBuffer buffer{&bytes};
    buffer.open(QIODevice::WriteOnly);
    image.save(&buffer, "PNG");
    return bytes;
}

std::string json_of(const Answer& answer) {
    auto json = io::to_json(answer.report, answer.scenario);
    if (answer.a.course.run) {
        json["simulation"] = io::to_json(*answer.a.course.run, answer.a.report, answer.scenario.cluster);
    }
    return json.dump(1) + "\n";
}

Result<bool> write_trace_file(const Answer& answer, const std::filesystem::path& file) {
    if (!answer.a.course.run) {
        return fail(ErrorCode::kInfeasible, "not-simulated", "there is no course to write: the method was not simulated", file.string());
    }
    return io::write_whole(file, [&](const io::TextSink& sink) { return io::write_trace(*answer.a.course.run, answer.scenario.cluster, sink).is_whole; });
}

}  // namespace

Result<bool> write_view(const Answer& answer, ViewState state, const std::filesystem::path& file, const ExportStyle& style) {
    const auto name = file.filename().string();
    if (name.ends_with(".trace.json")) {
        return write_trace_file(answer, file);
    }
    if (name.ends_with(".json")) {
        return io::write_whole(file, json_of(answer));
    }
    if (name.ends_with(".csv")) {
        auto listing = state.listing;
        switch (state.view) {
            case View::kLayout:
                listing = Listing::kRanks;
                break;
            case View::kTimeline:
                listing = Listing::kLanes;
                break;
            case View::kLinks:
                listing = Listing::kLinks;
                break;
            case View::kCompare:
                listing = Listing::kMethods;
                break;
            case View::kFlows:
            case View::kMatrix:
            case View::kTable:
                break;
        }
        return io::write_whole(file, to_csv(make_table(answer, state, listing)));
    }
    state.has_footer = true;
    const auto scene = make_scene(answer, state, style.width, style.height);
    const auto bytes = name.ends_with(".svg") ? svg_of(scene, style.theme) : name.ends_with(".pdf") ? pdf_of(scene, style.theme) : png_of(scene, style);
    if (!name.ends_with(".png") && !name.ends_with(".svg") && !name.ends_with(".pdf")) {
        return fail(ErrorCode::kInvalidInput, "file-kind", "the file's name must end in .png, .svg, .pdf, .csv, .json or .trace.json", file.string());
    }
    return io::write_whole(file, std::string_view{bytes.constData(), static_cast<std::size_t>(bytes.size())});
}

}  // namespace refit::gui
