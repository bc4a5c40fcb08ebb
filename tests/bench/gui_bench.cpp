// SPDX-License-Identifier: Apache-2.0
// The window against its budgets, with a million flows, on a screen that nobody sees.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <malloc.h>

#include <QApplication>
#include <QImage>
#include <QMouseEvent>
#include <QPainter>
#include <QTemporaryDir>

#include "../gui/small.hpp"
#include "export.hpp"
#include "main_window.hpp"
#include "refit/gui/views.hpp"
#include "scene_view.hpp"

namespace refit::gui {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(const std::function<void()>& work) {
    const auto start = Clock::now();
    work();
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// The least of several runs: what the code takes where nothing else disturbs it.
double best_of(int runs, const std::function<void()>& work) {
    double best = 1e300;
    for (int i = 0; i < runs; ++i) {
        best = std::min(best, milliseconds(work));
    }
    return best;
}

/// What is in use: memory that was given back to the allocator does not count. Unit: MB.
double resident() {
    malloc_trim(0);
    std::ifstream status{"/proc/self/statm"};
    std::size_t all = 0;
    std::size_t pages = 0;
    status >> all >> pages;
    return static_cast<double>(pages) * 4096e-6;
}

bool tell(const char* what, double value, double budget, const char* unit) {
    const bool holds = value <= budget;
    std::printf("%-58s %9.1f %-3s budget %6.0f %-3s %s\n", what, value, unit, budget, unit, holds ? "holds" : "MISSED");
    return holds;
}

/// A million flows between the ranks of a scenario, over its cargo.
std::shared_ptr<const FlowTable> synthetic(const FlowTable& like, std::uint32_t ranks, const Groups& domains) {
    FlowTable flows;
    flows.cargos = like.cargos;
    std::mt19937 random{11};
    constexpr std::size_t kFlows = 1'000'000;
    for (std::size_t i = 0; i < kFlows; ++i) {
        const auto from = static_cast<std::uint32_t>(random() % ranks);
        const auto to = static_cast<std::uint32_t>(random() % ranks);
        flows.source.push_back(from);
        flows.destination.push_back(to);
        flows.cargo.push_back(static_cast<std::uint32_t>(random() % flows.cargos.size()));
        flows.hops.push_back(1);
        flows.bytes.push_back(1 + random() % 1'000'000);
        flows.is_network.push_back(domains.of_rank(from) != domains.of_rank(to) ? 1 : 0);
    }
    return std::make_shared<const FlowTable>(std::move(flows));
}

bool views(const std::shared_ptr<const Answer>& answer) {
    bool holds = true;
    double most_draft = 0.0;
    double most_final = 0.0;
    for (const auto view : kViews) {
        ViewState state;
        state.view = view;
        Scene scene;
        const auto made = best_of(3, [&] { scene = make_scene(*answer, state, 1600.0, 900.0); });
        const auto draft = best_of(3, [&] { (void)to_image(scene, {Theme::kLight, 1.0, true}, 1.0); });
        const auto smooth = best_of(3, [&] { (void)to_image(scene, {Theme::kLight}, 1.0); });
        std::printf("  %-10s scene %6.1f ms, draft %6.1f ms, smooth %6.1f ms\n", std::string{name_of(view)}.c_str(), made, draft, smooth);
        most_draft = std::max(most_draft, made + draft);
        most_final = std::max(most_final, made + smooth);
    }
    holds &= tell("new draft of any view", most_draft, 60.0, "ms");
    holds &= tell("smooth picture of any view", most_final, 400.0, "ms");
    ViewState grouped;
    grouped.view = View::kMatrix;
    grouped.grouping = Grouping::kRank;
    holds &= tell("change of grouping, to every rank", best_of(3, [&] {
                      (void)to_image(make_scene(*answer, grouped, 1600.0, 900.0), {Theme::kLight, 1.0, true}, 1.0);
                  }), 50.0, "ms");
    grouped.filter = parse_filter("tensor:*experts* link:nic").value();
    grouped.grouping = Grouping::kStage;
    holds &= tell("change of filter", best_of(3, [&] { (void)make_scene(*answer, grouped, 1600.0, 900.0); }), 50.0, "ms");
    return holds;
}

bool frames(const std::shared_ptr<const Answer>& answer) {
    SceneView view;
    view.resize(1600, 900);
    ViewState state;
    state.view = View::kFlows;
    view.show();
    view.show_scene([answer, state](double width, double height) { return make_scene(*answer, state, width, height); });
    view.finish();
    QApplication::processEvents();
    // As a pointer goes over the elements: the event, what it changes, and the pixels that are painted anew.
    const auto& elements = view.scene().elements;
    std::vector<double> hovered;
    for (std::size_t i = 0; i < 200; ++i) {
        const auto at = elements[i * 7 % elements.size()].frame.centre();
        hovered.push_back(milliseconds([&] {
            QMouseEvent move{QEvent::MouseMove, QPointF{at.x, at.y}, view.mapToGlobal(QPointF{at.x, at.y}), Qt::NoButton, Qt::NoButton, {}};
            QApplication::sendEvent(&view, &move);
            QApplication::processEvents();
        }));
    }
    std::sort(hovered.begin(), hovered.end());
    bool holds = tell("frame as a pointer moves over elements, 95 %", hovered[189], 8.0, "ms");
    std::vector<double> times;
    QImage screen{1600, 900, QImage::Format_RGB32};
    for (int i = 0; i < 100; ++i) {
        view.step(1);
        times.push_back(milliseconds([&] {
            QPainter painter{&screen};
            view.render(&painter);
        }));
    }
    std::sort(times.begin(), times.end());
    holds &= tell("the whole frame anew, 95 %", times[94], 8.0, "ms");
    return holds;
}

/// A result of a million flows to its picture.
bool showing(const std::shared_ptr<const Answer>& large) {
    SceneView view;
    view.resize(1600, 900);
    view.show();
    const auto first = milliseconds([&] {
        ViewState state;
        state.view = View::kFlows;
        view.show_scene([large, state](double width, double height) { return make_scene(*large, state, width, height); });
        view.finish();
        QApplication::processEvents();
    });
    return tell("a result of a million flows to its smooth picture", first, 1000.0, "ms");
}

/// A plan file dropped onto the window: to its first picture, and until everything about it is there.
class OpeningAFile {
public:
    OpeningAFile(std::string name, const Question& question) : name_{std::move(name)} {
        const auto source = answer_of(question);
        flows_ = source->a.flows->size();
        file_ = folder_.filePath(QStringLiteral("plan.json")).toStdString();
        std::ofstream{file_} << plan_text(*source);
        std::printf("  %s: %zu flows of %u GPUs in a plan file of %.1f MB\n", name_.c_str(), flows_, source->scenario.cluster.gpus(),
                    static_cast<double>(std::filesystem::file_size(file_)) * 1e-6);
    }

    /// Without a budget, the figures are only told.
    bool run(bool has_budget) {
        const auto before = resident();
        MainWindow window{library(), folder_.filePath(QStringLiteral("settings.ini"))};
        window.resize(1440, 900);
        window.show();
        window.start_first();
        window.finish();
        window.set_view(View::kFlows);
        window.finish();
        const auto start = Clock::now();
        const auto elapsed = [&] { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); };
        double blocked = 0.0;
        const auto wait = [&](const std::function<bool()>& is_there) {
            while (!is_there()) {
                blocked = std::max(blocked, milliseconds([] { QApplication::processEvents(); }));
                std::this_thread::sleep_for(std::chrono::microseconds{200});
            }
        };
        bool is_painted = false;
        window.view().on_painted = [&] { is_painted = window.shown()->a.flows && window.shown()->a.flows->size() == flows_; };
        window.open(file_);
        wait([&] { return is_painted; });
        const auto first = elapsed();
        wait([&] { return !window.is_busy(); });
        window.view().finish();
        const auto whole = elapsed();
        const auto told = [&](const char* what, double value, double budget, const char* unit) {
            if (!has_budget) {
                std::printf("  %s: %s %.1f %s\n", name_.c_str(), what, value, unit);
                return true;
            }
            return tell((name_ + ": " + what).c_str(), value, budget, unit);
        };
        bool holds = told("the file to its first picture", first, 1000.0, "ms");
        holds &= told("the file to all of its answer", whole, 3000.0, "ms");
        std::printf("  %s: the window's thread was away for %.1f ms at most, its memory grew by %.1f MB\n", name_.c_str(), blocked, resident() - before);
        return holds;
    }

private:
    std::string name_;
    QTemporaryDir folder_;
    std::string file_;
    std::size_t flows_ = 0;
};

bool opening() {
    auto question = question_of("kimi-k3-gb200", Method::kDirect);
    set_field(question.draft, "train.gpus", "2048");
    set_field(question.draft, "generate.gpus", "2048");
    set_field(question.draft, "generate.layout", "tp16.dp128.ep64");  // 999,424 flows by direct.
    bool holds = OpeningAFile{"a million", question}.run(true);
    // Replicas that share stripes: as many tasks to simulate as flows.
    question.method = Method::kStriped;
    holds &= OpeningAFile{"striped", question}.run(false);
    return holds;
}

bool questions() {
    bool holds = true;
    auto question = question_of("kimi-k3-gb200");
    question.is_draft = true;
    const auto base = answer_of(question);
    holds &= tell("slider to new numbers, 768 GPUs, closed form", best_of(3, [&] { (void)answer(question, library(), {}, base.get()); }), 50.0, "ms");
    const auto start = Clock::now();
    std::atomic<bool> stops{false};
    double late = 0.0;
    question = question_of("deepseek-v3-h100", Method::kStriped);
    std::thread stopper{[&] {
        std::this_thread::sleep_for(std::chrono::milliseconds{300});
        stops = true;
    }};
    const auto made = answer(question, library(), {[&] { return stops.load(); }, {}});
    late = std::chrono::duration<double, std::milli>(Clock::now() - start).count() - 300.0;
    stopper.join();
    holds &= tell("from Cancel to the end of the work", made ? 0.0 : std::max(0.0, late), 100.0, "ms");
    return holds;
}

bool start_up() {
    const QTemporaryDir folder;
    const auto settings = folder.filePath(QStringLiteral("settings.ini"));
    double first = 0.0;
    {
        std::unique_ptr<MainWindow> window;
        first = milliseconds([&] {
            window = std::make_unique<MainWindow>(library(), settings);
            window->resize(1440, 900);
            window->show();
            window->start_first();
            window->finish();
            QApplication::processEvents();
            window->finish();
        });
    }
    const auto cycle = [&] {
        MainWindow window{library(), settings};
        window.show();
        window.start_first();
        window.finish();
        QApplication::processEvents();
        window.finish();
        window.close();
    };
    cycle();
    cycle();
    const auto before = resident();
    for (int i = 0; i < 10; ++i) {
        cycle();
    }
    bool holds = tell("start to the first picture of the example", first, 500.0, "ms");
    holds &= tell("growth over ten times open and close", std::max(0.0, resident() - before), 5.0, "MB");
    return holds;
}

int run() {
    bool holds = start_up();
    holds &= questions();
    const auto base = answer_of(question_of("kimi-k3-gb200"));
    const auto before = resident();
    auto large = std::make_shared<Answer>(*base);
    large->a.flows = synthetic(*base->a.flows, base->scenario.cluster.gpus(), base->by(Grouping::kDomain));
    holds &= tell("memory of a million flows", resident() - before, 250.0, "MB");
    holds &= views(large);
    holds &= frames(large);
    holds &= showing(large);
    holds &= opening();
    const QTemporaryDir folder;
    const auto file = [&](const char* name) { return std::filesystem::path{folder.filePath(QString::fromLatin1(name)).toStdString()}; };
    ViewState flows;
    flows.view = View::kFlows;
    holds &= tell("PNG of four times the size", best_of(1, [&] { (void)write_view(*large, flows, file("a.png"), {Theme::kLight, 1280.0, 800.0, 4.0}); }), 3000.0, "ms");
    holds &= tell("SVG", best_of(1, [&] { (void)write_view(*large, flows, file("a.svg"), {}); }), 3000.0, "ms");
    holds &= tell("size of the SVG", static_cast<double>(std::filesystem::file_size(file("a.svg"))) * 1e-6, 2.0, "MB");
    return holds ? 0 : 1;
}

}  // namespace
}  // namespace refit::gui

int main(int argc, char** argv) {
    const QTemporaryDir place;
    setenv("QT_QPA_PLATFORM", "offscreen", 1);
    for (const auto* name : {"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"}) {
        setenv(name, place.path().toStdString().c_str(), 1);
    }
    qInstallMessageHandler([](QtMsgType, const QMessageLogContext&, const QString&) {});
    QApplication::setStyle(QStringLiteral("Fusion"));
    const QApplication application{argc, argv};
    return refit::gui::run();
}
