// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include <QFile>
#include <QFontMetricsF>
#include <QImage>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QPainter>
#include <QProcess>
#include <QSvgRenderer>
#include <gtest/gtest.h>

#include "export.hpp"
#include "paint.hpp"
#include "refit/gui/views.hpp"
#include "small.hpp"

namespace refit::gui {
namespace {

namespace fs = std::filesystem;

ViewState looking_at(View view) {
    ViewState state;
    state.view = view;
    return state;
}

QImage picture(const Answer& answer, View view, Theme theme, double scale = 1.0) {
    return to_image(make_scene(answer, looking_at(view), 1280.0, 800.0), {theme}, scale);
}

constexpr int kStep = 5;       ///< Goldens keep every fifth value of a channel: files stay small.
constexpr int kTolerance = 8;  ///< Of a channel.

/// Each channel at the nearest of its steps: at most 2 off.
QImage stepped(const QImage& image) {
    auto result = image.convertToFormat(QImage::Format_RGB32);
    const auto nearest = [](int value) { return (value + kStep / 2) / kStep * kStep; };
    for (int y = 0; y < result.height(); ++y) {
        auto* line = reinterpret_cast<QRgb*>(result.scanLine(y));
        for (int x = 0; x < result.width(); ++x) {
            line[x] = qRgb(nearest(qRed(line[x])), nearest(qGreen(line[x])), nearest(qBlue(line[x])));
        }
    }
    return result;
}

/// The same pixels with a palette, where they have few enough colours. Pre: RGB32.
QImage with_palette(const QImage& image) {
    std::map<QRgb, int> number;
    QList<QRgb> colours;
    QImage small{image.size(), QImage::Format_Indexed8};
    for (int y = 0; y < image.height(); ++y) {
        const auto* from = reinterpret_cast<const QRgb*>(image.constScanLine(y));
        auto* to = small.scanLine(y);
        for (int x = 0; x < image.width(); ++x) {
            const auto [entry, is_new] = number.try_emplace(from[x] | 0xff000000U, static_cast<int>(colours.size()));
            if (is_new) {
                colours.push_back(entry->first);
            }
            if (colours.size() > 256) {
                return image;
            }
            to[x] = static_cast<uchar>(entry->second);
        }
    }
    small.setColorTable(colours);
    return small;
}

/// Share of pixels of which a colour differs by more than this. Pre: both are RGB32.
double differing(const QImage& a, const QImage& b, int by) {
    if (a.size() != b.size()) {
        return 1.0;
    }
    int count = 0;
    for (int y = 0; y < a.height(); ++y) {
        const auto* left = reinterpret_cast<const QRgb*>(a.constScanLine(y));
        const auto* right = reinterpret_cast<const QRgb*>(b.constScanLine(y));
        for (int x = 0; x < a.width(); ++x) {
            const auto p = left[x];
            const auto q = right[x];
            if (((p ^ q) & 0xffffffU) != 0) {
                count += std::abs(qRed(p) - qRed(q)) > by || std::abs(qGreen(p) - qGreen(q)) > by || std::abs(qBlue(p) - qBlue(q)) > by ? 1 : 0;
            }
        }
    }
    return static_cast<double>(count) / (a.width() * a.height());
}

void expect_golden(const std::string& scenario, const Answer& answer) {
    const bool updates = std::getenv("REFIT_UPDATE_GOLDEN") != nullptr;
    for (const auto theme : {Theme::kLight, Theme::kDark}) {
        for (const auto view : kViews) {
            const auto image = picture(answer, view, theme);
            const auto background = qRgb(colour_of(theme, Ink::kBackground).red, colour_of(theme, Ink::kBackground).green, colour_of(theme, Ink::kBackground).blue);
            int drawn = 0;
            std::set<QRgb> colours;
            for (int y = 0; y < image.height(); y += 2) {
                for (int x = 0; x < image.width(); x += 2) {
                    drawn += image.pixel(x, y) != background ? 1 : 0;
                    colours.insert(image.pixel(x, y));
                }
            }
            const auto name = scenario + "-" + std::string{name_of(view)} + (theme == Theme::kDark ? "-dark" : "-light");
            EXPECT_GT(drawn, image.width() * image.height() / 400) << name;
            EXPECT_GE(colours.size(), 16U) << name;
            const auto file = fs::path{REFIT_GOLDEN_DIR} / "gui" / (name + ".png");
            if (updates) {
                with_palette(stepped(image)).save(QString::fromStdString(file.string()), "PNG", 0);
            }
            const QImage golden{QString::fromStdString(file.string())};
            ASSERT_FALSE(golden.isNull()) << file;
            const auto share = differing(image, golden.convertToFormat(QImage::Format_RGB32), kTolerance - kStep / 2);
            EXPECT_LE(share, 0.005) << name << "; REFIT_UPDATE_GOLDEN=1 rewrites it";
            if (share > 0.005) {
                image.save(QString::fromStdString(testing::TempDir() + name + ".png"));
            }
        }
    }
}

TEST(Pictures, OfDeepSeekOnH100AreAsTheyWere) { expect_golden("deepseek-v3-h100", large_answer()); }

TEST(Pictures, OfDeepSeekOnGb200AreAsTheyWere) { expect_golden("deepseek-v3-gb200", *answer_of(question_of("deepseek-v3-gb200"))); }

TEST(Pictures, ScaleWithTheScreenAndHitTheSameThing) {
    const auto scene = make_scene(large_answer(), looking_at(View::kMatrix), 1280.0, 800.0);
    for (const auto scale : {1.0, 1.5, 2.0, 4.0}) {
        const auto image = to_image(scene, {Theme::kLight}, scale);
        EXPECT_EQ(image.width(), static_cast<int>(1280.0 * scale));
        EXPECT_EQ(image.height(), static_cast<int>(800.0 * scale));
        EXPECT_EQ(image.devicePixelRatio(), scale);
    }
    for (const auto& element : scene.elements) {
        EXPECT_EQ(scene.target_at(element.frame.centre()), element.target) << element.name;
    }
}

TEST(Pictures, CutNoWordShortAtTheUsualSize) {
    for (const auto* answer : {&small_answer(), &large_answer()}) {
        for (const auto view : kViews) {
            const auto scene = make_scene(*answer, looking_at(view), 1280.0, 800.0);
            for (const auto& mark : scene.marks) {
                const auto* text = std::get_if<TextMark>(&mark);
                if (text == nullptr) {
                    continue;
                }
                QFont font{font_family()};
                font.setPixelSize(static_cast<int>(std::lround(text->size)));
                font.setBold(text->is_bold);
                const auto room = text->is_upward ? text->frame.height : text->frame.width;
                // Sentences of any length, such as why a method cannot run, may end in an ellipsis.
                if (text->text.size() < 60) {
                    EXPECT_LE(QFontMetricsF{font}.horizontalAdvance(QString::fromStdString(text->text)), room + 1.0) << name_of(view) << ": " << text->text;
                }
                EXPECT_GE(text->frame.x, -0.5) << text->text;
                EXPECT_LE(text->frame.right(), 1280.5) << name_of(view) << ": " << text->text;
                EXPECT_LE(text->frame.bottom(), 800.5) << name_of(view) << ": " << text->text;
            }
        }
    }
}

TEST(Pictures, AreWrittenAsPngSvgPdfCsvJsonAndTrace) {
    const auto& answer = small_answer();
    const fs::path folder = testing::TempDir();
    const auto write = [&](const char* name, View view, double scale = 1.0) {
        const auto written = write_view(answer, looking_at(view), folder / name, {Theme::kLight, 1280.0, 800.0, scale});
        EXPECT_TRUE(written) << name;
        QFile file{QString::fromStdString((folder / name).string())};
        EXPECT_TRUE(file.open(QIODevice::ReadOnly));
        return file.readAll();
    };
    EXPECT_EQ(QImage::fromData(write("flows.png", View::kFlows, 4.0)).size(), QSize(5120, 3200));
    const auto svg = write("flows.svg", View::kFlows);
    EXPECT_TRUE(QSvgRenderer{svg}.isValid());
    EXPECT_TRUE(svg.contains("<title>Who sends to whom"));
    EXPECT_TRUE(svg.contains(" GB"));
    EXPECT_LT(svg.size(), 2'000'000);
    EXPECT_TRUE(write("flows.pdf", View::kFlows).startsWith("%PDF"));
    EXPECT_TRUE(write("flows.csv", View::kFlows).startsWith("sender,receiver,"));
    const auto report = QJsonDocument::fromJson(write("report.json", View::kFlows)).object();
    EXPECT_EQ(report[QLatin1String{"schema"}].toString(), QStringLiteral("refit.report"));
    const auto trace = QJsonDocument::fromJson(write("flows.trace.json", View::kTimeline)).object();
    EXPECT_FALSE(trace[QLatin1String{"traceEvents"}].toArray().isEmpty());
    EXPECT_FALSE(write_view(answer, looking_at(View::kFlows), folder / "flows.bmp", {}));
    EXPECT_FALSE(write_view(answer, looking_at(View::kFlows), "/no/such/folder/flows.png", {}));
}

TEST(Pictures, AreExportedWithoutAScreen) {
    const fs::path folder = testing::TempDir();
    const auto run = [](const QStringList& words) {
        QProcess program;
        auto environment = QProcessEnvironment::systemEnvironment();
        environment.remove(QStringLiteral("QT_QPA_PLATFORM"));
        environment.remove(QStringLiteral("DISPLAY"));
        program.setProcessEnvironment(environment);
        program.start(QStringLiteral(REFIT_GUI), words);
        program.waitForFinished(60000);
        return std::pair{program.exitCode(), program.readAllStandardError().toStdString()};
    };
    const auto file = QString::fromStdString((folder / "cli.svg").string());
    EXPECT_EQ(run({QStringLiteral("--export"), QStringLiteral("links"), QStringLiteral("-O"), file, QStringLiteral("reshard-one-domain")}), (std::pair<int, std::string>{0, ""}));
    EXPECT_TRUE(QFile::exists(file));
    EXPECT_EQ(run({QStringLiteral("--export"), QStringLiteral("lnks"), QStringLiteral("-O"), file}).first, 2);
    EXPECT_NE(run({QStringLiteral("--exprt"), QStringLiteral("links")}).second.find("did you mean '--export'"), std::string::npos);
    EXPECT_EQ(run({QStringLiteral("--export"), QStringLiteral("links"), QStringLiteral("-O"), file, QStringLiteral("no-such")}).first, 3);
    const auto infeasible = run({QStringLiteral("--export"), QStringLiteral("links"), QStringLiteral("-O"), file, QStringLiteral("deepseek-v3-h100"), QStringLiteral("--set"), QStringLiteral("train.layout=tp3.pp16.ep16")});
    EXPECT_EQ(infeasible.first, 4);
    EXPECT_NE(infeasible.second.find("try  train.layout = "), std::string::npos) << infeasible.second;
}

TEST(Shot, OfAWindowOnAnXServerShowsPicturesAndPanels) {
    const char* file = std::getenv("REFIT_SHOT");
    if (file == nullptr) {
        GTEST_SKIP() << "REFIT_SHOT names no picture";
    }
    const QImage shot{QString::fromLocal8Bit(file)};
    ASSERT_EQ(shot.size(), QSize(1280, 800));
    std::set<QRgb> colours;
    for (int y = 0; y < shot.height(); y += 2) {
        for (int x = 0; x < shot.width(); x += 2) {
            colours.insert(shot.pixel(x, y));
        }
    }
    EXPECT_GT(colours.size(), 60U);
}

}  // namespace
}  // namespace refit::gui
