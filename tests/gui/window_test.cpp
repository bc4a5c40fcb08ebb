// SPDX-License-Identifier: Apache-2.0
#include "main_window.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>

#include <QAccessible>
#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDockWidget>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMimeData>
#include <QProcess>
#include <QPushButton>
#include <QSlider>
#include <QTableWidget>
#include <QTest>
#include <QWheelEvent>
#include <gtest/gtest.h>

#include "panels.hpp"
#include "refit/gui/commands.hpp"
#include "scene_view.hpp"
#include "small.hpp"
#include "view_panes.hpp"

namespace refit::gui {
namespace {

/// A window with a scenario, settings of its own, and its answer there.
class TestWindow {
public:
    explicit TestWindow(const std::string& scenario = "reshard-one-domain", QString settings = {}) {
        if (settings.isEmpty()) {
            static int count = 0;
            settings = QString::fromStdString(testing::TempDir()) + QStringLiteral("refit-gui-%1-%2.ini").arg(QCoreApplication::applicationPid()).arg(++count);
            QFile::remove(settings);
        }
        window_ = std::make_unique<MainWindow>(library(), settings);
        window_->resize(1280, 800);
        window_->show();
        window_->activateWindow();
        window_->open(scenario);
        settle();
    }
    void settle() {
        for (int i = 0; i < 3; ++i) {
            window_->finish();
            QApplication::processEvents();
        }
    }
    MainWindow* operator->() { return window_.get(); }
    MainWindow& operator*() { return *window_; }

private:
    std::unique_ptr<MainWindow> window_;
};

TEST(Window, ClickingACellSelectsThePairInEveryViewAndTellsThePlannersBytes) {
    TestWindow window;
    window->set_view(View::kMatrix);
    window.settle();
    const Target pair{Target::Kind::kPair, Grouping::kRank, 2, 6};
    const auto cell = window->view().scene().find(pair);
    ASSERT_TRUE(cell);
    const auto at = window->view().scene().elements[*cell].frame.centre();
    QTest::mouseClick(&window->view(), Qt::LeftButton, {}, QPoint{static_cast<int>(at.x), static_cast<int>(at.y)});
    window.settle();
    EXPECT_EQ(window->state().selection, pair);
    EXPECT_TRUE(window->details().contains(QStringLiteral("2,147,483,648 B"))) << window->details().toStdString();
    for (const auto view : {View::kFlows, View::kTimeline, View::kLayout}) {
        window->set_view(view);
        window.settle();
        EXPECT_EQ(id_of(window->view().selection()), "pair:rank:2>6");
    }
    QTest::keyClick(&*window, Qt::Key_Escape);
    EXPECT_FALSE(window->state().selection.is_set());
}

TEST(Window, RunsEachCommandOnceByItsKeyAndListsItInPaletteAndSheet) {
    TestWindow window;
    PaletteDialog palette{[](std::string_view) {}, nullptr};
    KeysDialog sheet{nullptr};
    EXPECT_EQ(static_cast<std::size_t>(sheet.findChild<QTableWidget*>()->rowCount()), commands().size());
    for (const auto& command : commands()) {
        ASSERT_NE(window->findChild<QAction*>(QString::fromUtf8(command.id.data(), static_cast<qsizetype>(command.id.size()))), nullptr) << command.id;
        if (command.id == "quit") {
            continue;  // Ends the loop's window: below.
        }
        for (const auto& key : keys_of(command)) {
            window->view().setFocus();
            window->findChild<QAction*>(QStringLiteral("undo"))->setEnabled(true);
            window->findChild<QAction*>(QStringLiteral("redo"))->setEnabled(true);
            const auto before = window->times_run(command.id);
            const auto combination = QKeySequence{QString::fromStdString(key)}[0];
            QTest::keyClick(&window->view(), combination.key(), combination.keyboardModifiers());
            EXPECT_EQ(window->times_run(command.id), before + 1) << command.id << " by " << key;
            for (auto* dialog : window->findChildren<QDialog*>()) {
                dialog->close();
            }
            QApplication::processEvents();
            window->activateWindow();
            ASSERT_TRUE(QTest::qWaitForWindowActive(&*window, 2000));
        }
    }
}

TEST(Window, QuitsOnceByItsKey) {
    TestWindow window;
    ASSERT_TRUE(window->isVisible());
    const auto key = QKeySequence{QString::fromStdString(keys_of(*std::ranges::find(commands(), "quit", &Command::id)).front())}[0];
    window->view().setFocus();
    QTest::keyClick(&window->view(), key.key(), key.keyboardModifiers());
    EXPECT_EQ(window->times_run("quit"), 1U);
    EXPECT_FALSE(window->isVisible());
}

TEST(Window, UndoesAndRedoesAFilterAndShowsItInTheSearchField) {
    TestWindow window;
    auto* search = window->findChild<QLineEdit*>(QStringLiteral("search"));
    const auto is_there = [&](const char* text) {
        return window->state().filter.text == text && search->text() == QString::fromLatin1(text) && window->state().filter.is_set() == (*text != '\0');
    };
    window->edit_field("system.nic", "500Gbit/s");
    search->setText(QStringLiteral("link:nic"));
    window->set_method(Method::kDirect, true);
    search->setText(QStringLiteral("rank:2"));
    window->run("undo");
    EXPECT_TRUE(is_there("link:nic"));
    window->run("undo");  // The method.
    EXPECT_TRUE(is_there("link:nic"));
    window->run("undo");
    EXPECT_TRUE(is_there(""));
    EXPECT_NE(window->question().draft.find("system.nic"), nullptr);
    window.settle();
    for (int i = 0; i < 3; ++i) {
        window->run("redo");
    }
    EXPECT_TRUE(is_there("rank:2"));
    EXPECT_EQ(window->question().method, Method::kDirect);
}

TEST(Window, UndoesAndRedoesEditsMethodsAndFilters) {
    TestWindow window;
    const auto first = scenario_text(window->question().draft);
    std::mt19937 random{3};
    for (int i = 0; i < 50; ++i) {
        switch (random() % 4) {
            case 0:
                window->edit_field("system.nic", std::to_string(100 + random() % 900) + "Gbit/s");
                break;
            case 1:
                window->set_method(static_cast<Method>(random() % 4), random() % 2 == 0);
                break;
            case 2:
                (void)window->set_filter("rank:" + std::to_string(random() % 8));
                break;
            default:
                window->edit_field("engine.options.NRL_REFIT_NUM_STREAMS", std::to_string(1 + random() % 4));
        }
    }
    const auto last = scenario_text(window->question().draft);
    const auto last_method = window->question().method;
    const auto last_filter = window->state().filter;
    for (int i = 0; i < 50; ++i) {
        window->run("undo");
    }
    EXPECT_EQ(scenario_text(window->question().draft), first);
    EXPECT_FALSE(window->state().filter.is_set());
    for (int i = 0; i < 50; ++i) {
        window->run("redo");
    }
    EXPECT_EQ(scenario_text(window->question().draft), last);
    EXPECT_EQ(window->question().method, last_method);
    EXPECT_EQ(window->state().filter, last_filter);
    window.settle();
    EXPECT_TRUE(window->faults().empty());
}

TEST(Window, ShowsTheTotalsThatTheCommandLinePrints) {
    TestWindow window;
    for (const auto* method : {"hybrid", "gather-broadcast"}) {
        QProcess refit;
        refit.start(QStringLiteral(REFIT_PROGRAM), {QStringLiteral("plan"), QStringLiteral("reshard-one-domain"), QStringLiteral("--method"), QString::fromLatin1(method), QStringLiteral("-o"), QStringLiteral("json")});
        ASSERT_TRUE(refit.waitForFinished(60000));
        const auto json = QJsonDocument::fromJson(refit.readAllStandardOutput()).object();
        const auto entry = json[QLatin1String{"methods"}].toArray()[0].toObject();
        window->set_method(parse_method(method).value(), true);
        window.settle();
        EXPECT_EQ(static_cast<qint64>(window->shown()->a.report.network.count()), entry[QLatin1String{"network_bytes"}].toInteger());
        EXPECT_EQ(static_cast<qint64>(window->shown()->a.report.nvlink.count()), entry[QLatin1String{"nvlink_bytes"}].toInteger());
        EXPECT_TRUE(window->result().contains(method == std::string{"hybrid"} ? QStringLiteral("25.8 GB on NVLink") : QStringLiteral("77.3 GB on NVLink"))) << window->result().toStdString();
    }
}

TEST(Window, ASmallOneTellsInItsResultBarWhatFits) {
    TestWindow window{"deepseek-v3-h100"};
    const auto labels = window->findChildren<QLabel*>();
    const auto found = std::ranges::find(labels, QStringLiteral("Result"), &QLabel::accessibleName);
    ASSERT_NE(found, labels.end());
    const auto* bar = *found;
    for (const auto& size : {QSize{1440, 900}, QSize{900, 600}}) {
        window->resize(size);
        window.settle();
        const auto room = bar->contentsRect();
        EXPECT_LE(bar->fontMetrics().boundingRect(QRect{0, 0, room.width(), 10000}, Qt::TextWordWrap, bar->text()).height(), room.height()) << bar->text().toStdString();
        EXPECT_TRUE(bar->text().contains(QStringLiteral("2.81 s")) && bar->text().contains(QStringLiteral("(5.0x)"))) << bar->text().toStdString();
        EXPECT_EQ(bar->text() == window->result(), size.width() == 1440);
        EXPECT_EQ(bar->toolTip(), window->result());
    }
}

TEST(Window, ASuggestionIsAppliedByOneClick) {
    TestWindow window{"deepseek-v3-h100"};
    window->edit_field("train.layout", "tp3.pp16.ep16");
    window.settle();
    ASSERT_FALSE(window->faults().empty());
    EXPECT_NE(window->view().scene().title.find("cannot"), std::string::npos);
    QPushButton* cure = nullptr;
    for (auto* button : window->findChild<QWidget*>(QStringLiteral("faults"))->findChildren<QPushButton*>()) {
        if (button->text().startsWith(QStringLiteral("Use train.layout")) && button->isVisibleTo(&*window)) {
            cure = button;
        }
    }
    ASSERT_NE(cure, nullptr);
    cure->click();
    window.settle();
    EXPECT_TRUE(window->faults().empty());
    EXPECT_NE(window->question().draft.find("train.layout")->text, "tp3.pp16.ep16");
}

TEST(Window, AnyFieldCanBeSetAndAWrongNameIsTold) {
    TestWindow window;
    auto* edit = window->findChild<QLineEdit*>(QStringLiteral("any-field"));
    edit->setText(QStringLiteral("fabric.nics.trainer:1=down"));
    QTest::keyClick(edit, Qt::Key_Return);
    window.settle();
    EXPECT_TRUE(window->faults().empty());
    EXPECT_EQ(window->shown()->scenario.cluster.nic_share(RankId{1}), 0.0);
    EXPECT_NE(window->set_any("fabric.rails=true").find("did you mean"), std::string::npos);
    EXPECT_NE(window->set_any("nothing").find("FIELD=VALUE"), std::string::npos);
}

TEST(Window, ASliderIsOneStepAndGivesTheClosedFormUntilItIsLetGo) {
    TestWindow window;
    for (const auto* rate : {"500Gbit/s", "600Gbit/s", "700Gbit/s"}) {
        window->slide_field("system.nic", rate, false);
    }
    window.settle();
    EXPECT_FALSE(window->shown()->a.report.simulated);
    window->slide_field("system.nic", "800Gbit/s", true);
    window.settle();
    EXPECT_TRUE(window->shown()->a.report.simulated);
    window->run("undo");
    EXPECT_EQ(window->question().draft.find("system.nic"), nullptr);
}

TEST(Window, AFilterThatIsWrongIsToldAndTheOldOneStays) {
    TestWindow window;
    auto* search = window->findChild<QLineEdit*>(QStringLiteral("search"));
    search->setText(QStringLiteral("link:nic"));
    EXPECT_EQ(window->state().filter.text, "link:nic");
    search->setText(QStringLiteral("link:nicc"));
    EXPECT_EQ(window->state().filter.text, "link:nic");
    EXPECT_TRUE(search->styleSheet().contains(QStringLiteral("border")));
    EXPECT_TRUE(search->toolTip().contains(QStringLiteral("nvlink")));
    QTest::keyClick(&*window, Qt::Key_Escape);
    EXPECT_FALSE(window->state().filter.is_set());
}

TEST(Window, HasAnAccessibleNameForEveryControlAndElement) {
    TestWindow window;
    std::size_t controls = 0;
    for (auto* widget : window->findChildren<QWidget*>()) {
        if (widget->focusPolicy() == Qt::NoFocus || !widget->isVisible() || widget->objectName().startsWith(QStringLiteral("qt_")) || widget->inherits("QScrollArea")) {
            continue;
        }
        auto* access = QAccessible::queryAccessibleInterface(widget);
        ASSERT_NE(access, nullptr);
        EXPECT_FALSE(access->text(QAccessible::Name).isEmpty()) << widget->metaObject()->className() << " " << widget->objectName().toStdString();
        ++controls;
    }
    EXPECT_GT(controls, 15U);
    for (const auto view : kViews) {
        window->set_view(view);
        window.settle();
        auto* access = QAccessible::queryAccessibleInterface(&window->view());
        ASSERT_EQ(static_cast<std::size_t>(access->childCount()), window->view().scene().elements.size());
        ASSERT_GT(access->childCount(), 0);
        EXPECT_EQ(access->child(0)->text(QAccessible::Name).toStdString(), window->view().scene().elements[0].name);
        EXPECT_EQ(access->child(0)->role(), QAccessible::ListItem);
    }
}

TEST(Window, TabReachesEverythingAndComesBack) {
    TestWindow window;
    window->view().setFocus();
    std::set<QWidget*> seen;
    for (int i = 0; i < 80; ++i) {
        QTest::keyClick(QApplication::focusWidget() != nullptr ? QApplication::focusWidget() : &*window, Qt::Key_Tab);
        seen.insert(QApplication::focusWidget());
    }
    EXPECT_TRUE(seen.contains(&window->view()));
    EXPECT_GT(seen.size(), 15U);
}

TEST(Window, ArrowsWalkTheElementsAndEnterSelects) {
    TestWindow window;
    window->view().setFocus();
    QTest::keyClick(&window->view(), Qt::Key_Right);
    QTest::keyClick(&window->view(), Qt::Key_Right);
    EXPECT_EQ(window->view().focused(), 1U);
    QTest::keyClick(&window->view(), Qt::Key_Return);
    EXPECT_EQ(window->state().selection, window->view().scene().elements[1].target);
}

TEST(Window, RemembersItselfAndSurvivesCorruptFiles) {
    const auto settings = QString::fromStdString(testing::TempDir()) + QStringLiteral("refit-gui-kept.ini");
    QFile::remove(settings);
    {
        TestWindow window{"reshard-one-domain", settings};
        window->set_view(View::kLinks);
        window->set_theme(Theme::kDark);
        (void)window->set_filter("link:nic");
        window->findChild<QDockWidget*>(QStringLiteral("Details"))->hide();
        window->close();
    }
    {
        TestWindow window{"reshard-one-domain", settings};
        EXPECT_EQ(window->state().view, View::kLinks);
        EXPECT_EQ(window->theme(), Theme::kDark);
        EXPECT_EQ(window->state().filter.text, "link:nic");
        EXPECT_TRUE(window->findChild<QDockWidget*>(QStringLiteral("Details"))->isHidden());
        window->set_theme(Theme::kLight);
    }
    std::ofstream{settings.toStdString()} << std::string(300, '\x01') << "[[[=docks=@ByteArray(\n";
    std::ofstream{settings.toStdString() + ".autosave.json"} << "{\"schema\": \"refit.sc";
    MainWindow window{library(), settings};
    window.start_first();
    window.finish();
    QApplication::processEvents();
    window.finish();
    EXPECT_TRUE(window.faults().empty());
    ASSERT_NE(window.shown(), nullptr);
    EXPECT_EQ(window.shown()->scenario.name, "reshard-one-domain");
}

TEST(Window, ListsTheFilesThatWereOpenedAndForgetsThoseThatAreGone) {
    const auto settings = QString::fromStdString(testing::TempDir()) + QStringLiteral("refit-gui-recent.ini");
    QFile::remove(settings);
    const auto first = testing::TempDir() + "recent-1.json";
    const auto second = testing::TempDir() + "recent-2.json";
    for (const auto& file : {first, second}) {
        std::ofstream{file} << scenario_text(question_of("reshard-one-domain").draft);
    }
    {
        TestWindow window{"reshard-one-domain", settings};
        EXPECT_TRUE(window->recent().files().isEmpty());  // A shipped scenario is no file.
        for (const auto& file : {first, second, first}) {
            window->open(file);
        }
        window.settle();
        EXPECT_EQ(window->recent().files(), (QStringList{QString::fromStdString(first), QString::fromStdString(second)}));
        window->close();
    }
    TestWindow window{"reshard-two-domains", settings};
    auto* menu = window->findChild<QMenu*>(QStringLiteral("recent"));
    ASSERT_EQ(menu->actions().size(), 4);  // Two files, a line, and "forget".
    menu->actions()[1]->trigger();
    window.settle();
    EXPECT_EQ(window->recent().files().front(), QString::fromStdString(second));
    EXPECT_EQ(window->shown()->scenario.name, "reshard-one-domain");
    QFile::remove(QString::fromStdString(first));
    menu->actions()[1]->trigger();
    window.settle();
    EXPECT_EQ(window->recent().files(), QStringList{QString::fromStdString(second)});
    EXPECT_FALSE(window->faults().empty());
    ASSERT_NE(window->shown(), nullptr);
    menu->actions().back()->trigger();
    window.settle();
    EXPECT_TRUE(window->recent().files().isEmpty());
}

TEST(Window, ShowsTwoViewsWithOneSelectionAndKeepsTheSecond) {
    const auto settings = QString::fromStdString(testing::TempDir()) + QStringLiteral("refit-gui-beside.ini");
    QFile::remove(settings);
    {
        TestWindow window{"reshard-one-domain", settings};
        window->set_view(View::kMatrix);
        EXPECT_FALSE(window->beside().isVisible());
        window->run("split");
        window.settle();
        ASSERT_TRUE(window->beside().isVisible());
        EXPECT_NE(window->beside().scene().title.find("When each part"), std::string::npos) << window->beside().scene().title;
        window->set_beside(View::kFlows);
        window.settle();
        const Target pair{Target::Kind::kPair, Grouping::kRank, 2, 6};
        window->select(pair);
        EXPECT_EQ(window->view().selection(), pair);
        EXPECT_EQ(window->beside().selection(), pair);
        EXPECT_EQ(window->state().view, View::kMatrix);
        const auto band = window->beside().scene().find({Target::Kind::kPair, Grouping::kRank, 1, 5});
        ASSERT_TRUE(band);
        window->beside().on_select(window->beside().scene().elements[*band].target);
        EXPECT_EQ(id_of(window->view().selection()), "pair:rank:1>5");
        window->close();
    }
    TestWindow window{"reshard-one-domain", settings};
    EXPECT_TRUE(window->beside().isVisible());
    EXPECT_NE(window->beside().scene().title.find("Who sends"), std::string::npos);
    window->run("split");
    EXPECT_FALSE(window->beside().isVisible());
}

TEST(Window, CommandsActOnTheViewThatHadTheFocusLastAndABarMarksIt) {
    TestWindow window;
    window->set_view(View::kMatrix);
    window->set_beside(View::kTimeline);
    window.settle();
    auto& panes = window->panes();
    EXPECT_NEAR(window->view().width(), window->beside().width(), 8);
    EXPECT_TRUE(panes.is_marked(0));
    EXPECT_FALSE(panes.is_marked(1));
    window->beside().setFocus();
    EXPECT_TRUE(panes.is_marked(1));
    EXPECT_FALSE(panes.is_marked(0));
    QTest::keyClick(&window->beside(), Qt::Key_2, Qt::ControlModifier);
    window.settle();
    EXPECT_NE(window->beside().scene().title.find("Who sends"), std::string::npos);
    EXPECT_EQ(window->state().view, View::kMatrix);
    EXPECT_EQ(window->active_state().view, View::kFlows);
    // The search field does not take it away.
    QTest::keyClick(&window->beside(), Qt::Key_Slash);
    EXPECT_EQ(QApplication::focusWidget(), window->findChild<QLineEdit*>(QStringLiteral("search")));
    EXPECT_TRUE(panes.is_marked(1));
    QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
    EXPECT_EQ(QApplication::focusWidget(), &window->beside());
    window->run("listing");
    EXPECT_EQ(window->active_state().view, View::kTable);
    EXPECT_EQ(window->state().view, View::kMatrix);
    window->run("next");
    EXPECT_TRUE(window->beside().focused());
    EXPECT_FALSE(window->view().focused());
    QTest::keyClick(&window->beside(), Qt::Key_F6);
    EXPECT_TRUE(panes.is_marked(0));
    EXPECT_EQ(QApplication::focusWidget(), &window->view());
    QTest::keyClick(&window->view(), Qt::Key_5, Qt::ControlModifier);
    EXPECT_EQ(window->state().view, View::kLinks);
    // With one view there is nothing to tell apart.
    window->beside().setFocus();
    window->run("split");
    EXPECT_FALSE(panes.is_marked(0) || panes.is_marked(1));
    window->run("view-layout");
    EXPECT_EQ(window->state().view, View::kLayout);
}

TEST(Window, EachViewScrollsByItselfAndNoFurtherThanItsRows) {
    TestWindow window{"deepseek-v3-h100"};
    window->set_view(View::kTable);
    window->set_beside(View::kTable);
    window.settle();
    const auto most = window->view().scene().most_scroll;
    ASSERT_GT(most, 0.0);
    const auto first_row = [](SceneView& view) { return view.scene().elements.front().name; };
    const auto top = first_row(window->view());
    const auto turn = [&](SceneView& view, int steps) {
        const QPointF at{view.width() / 2.0, view.height() / 2.0};
        QWheelEvent event{at, view.mapToGlobal(at), {}, {0, -120 * steps}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false};
        QApplication::sendEvent(&view, &event);
        window.settle();
    };
    turn(window->beside(), 3);
    EXPECT_EQ(first_row(window->view()), top);
    EXPECT_NE(first_row(window->beside()), top);
    turn(window->view(), 10'000);
    EXPECT_EQ(window->state().scroll, most);
    // It comes back at once: what went beyond the end was not counted.
    turn(window->view(), -1);
    EXPECT_LT(window->state().scroll, most);
    // Without a window of time, A and D move the rows of the view that has the focus.
    window->beside().setFocus();
    const auto before = window->active_state().scroll;
    window->run("pan-right");
    EXPECT_GT(window->active_state().scroll, before);
}

TEST(Window, ABadFileIsToldAndTheLastAnswerIsNotLost) {
    TestWindow window;
    const auto file = testing::TempDir() + "bad.json";
    std::ofstream{file} << R"({"schema": "refit.scenario", "tra)";
    window->open(file);
    window.settle();
    ASSERT_FALSE(window->faults().empty());
    EXPECT_NE(window->faults().front().where.find("bad.json:1:"), std::string::npos) << window->faults().front().where;
    ASSERT_NE(window->shown(), nullptr);
    window->open("reshard-two-domains");
    window.settle();
    EXPECT_TRUE(window->faults().empty());
    EXPECT_EQ(window->shown()->scenario.name, "reshard-two-domains");
}

TEST(Window, ReadsALargeFileOnTheWorkerAndLeavesAllAsItIsWhereThatIsGivenUp) {
    TestWindow window;
    const auto file = testing::TempDir() + "large-plan.json";
    const std::string room(300'000, ' ');
    std::ofstream{file} << plan_text(*answer_of(question_of("reshard-one-domain", Method::kDirect))) + room;
    window->open(file);
    EXPECT_TRUE(window->is_busy());
    QPushButton* cancel = nullptr;
    for (auto* button : window->findChildren<QPushButton*>()) {
        cancel = button->text() == QStringLiteral("Cancel") ? button : cancel;
    }
    ASSERT_NE(cancel, nullptr);
    EXPECT_TRUE(cancel->isVisible());
    cancel->click();
    EXPECT_FALSE(window->is_busy());
    window.settle();
    EXPECT_EQ(window->question().plan, nullptr);
    EXPECT_EQ(window->question().method, Method::kHybrid);
    EXPECT_TRUE(window->recent().files().isEmpty());
    window->open(file);
    window.settle();
    EXPECT_NE(window->question().plan, nullptr);
    EXPECT_EQ(window->question().method, Method::kDirect);
    EXPECT_TRUE(window->shown()->a.report.simulated);
    EXPECT_EQ(window->recent().files(), QStringList{QString::fromStdString(file)});
    std::ofstream{file} << R"({"schema": "refit.plan", )" + room;
    window->open(file);
    window.settle();
    ASSERT_FALSE(window->faults().empty());
    EXPECT_NE(window->faults().front().where.find("large-plan.json:1:"), std::string::npos);
    EXPECT_NE(window->question().plan, nullptr);
}

// Whatever is dropped onto the window: a message, and it goes on.
TEST(Window, TakesNoHarmFromFilesOfAnyKind) {
    TestWindow window;
    const std::string folder = testing::TempDir() + "refit-gui-bad/";
    std::filesystem::create_directories(folder + "empty-folder");
    const auto plan = plan_text(small_answer());
    std::string bytes(5000, '\0');
    std::mt19937 random{5};
    std::ranges::generate(bytes, [&] { return static_cast<char>(random()); });
    auto huge = plan;
    huge.replace(huge.find("\"train\":"), 8, "\"train\":99999999999999999999");
    const std::vector<std::pair<std::string, std::string>> files{
        {"empty.json", ""}, {"binary.json", bytes}, {"binary.cbor", bytes}, {"binary.yaml", bytes}, {"binary", bytes}, {"list.json", "[1, 2]"}, {"null.json", "null"},
        {"cut-plan.json", plan.substr(0, plan.size() / 2)}, {"huge-plan.json", huge}, {"other.json", R"({"schema": "refit.engine"})"},
        {"number.json", R"({"schema": 7})"}, {"rate.json", R"({"schema":"refit.scenario","schema_version":"1.0","model":"deepseek-v3","system":{"name":"h100-nvl8","nic":1e999}})"},
        {"gpus.json", R"({"schema":"refit.scenario","schema_version":"1.0","model":"deepseek-v3","train":{"gpus":18446744073709551616,"layout":"tp8"},"generate":{"gpus":8,"layout":"tp8"},"system":"h100-nvl8"})"},
        {"report.json", R"({"schema":"refit.report","methods":{"a":1}})"}, {"methods.json", R"({"schema":"refit.report","methods":[7,null,{"method":3,"kind":{}}]})"}};
    for (const auto& [name, content] : files) {
        std::ofstream{folder + name, std::ios::binary} << content;
        window->open(folder + name);
        window.settle();
        EXPECT_FALSE(window->faults().empty()) << name;
        EXPECT_NE(window->view().scene().title.find("cannot"), std::string::npos) << name;
    }
    for (const auto* place : {"empty-folder", "no-such-file.json"}) {
        window->open(folder + place);
        window.settle();
        EXPECT_FALSE(window->faults().empty()) << place;
    }
    window->open("reshard-two-domains");
    window.settle();
    EXPECT_TRUE(window->faults().empty());
}

TEST(Window, PlaysPinsAndLaysAMeasurementOver) {
    TestWindow window;
    window->run("play");
    EXPECT_TRUE(window->is_playing());
    QTest::qWait(120);
    window->run("play");
    EXPECT_TRUE(window->state().now);
    window->run("clear");
    window->run("motion");
    window->run("play");
    EXPECT_FALSE(window->is_playing());
    window->run("clear");
    window->run("pin");
    window->edit_field("system.nic", "800Gbit/s");
    window.settle();
    EXPECT_EQ(window->shown()->b.report.method, window->shown()->a.report.method);
    EXPECT_LT(window->shown()->a.seconds(), window->shown()->b.seconds());
    const auto file = testing::TempDir() + "run.json";
    std::ofstream{file} << R"({"schema":"refit.report","schema_version":"1.0","methods":[{"method":"hybrid","kind":"measured","seconds":0.3}]})";
    window->open(file);
    window.settle();
    EXPECT_EQ(window->state().view, View::kCompare);
    EXPECT_EQ(window->shown()->measured.at(Method::kHybrid).seconds, Seconds{0.3});
}

TEST(Window, CopiesTableAndCommandInTheCLocale) {
    QLocale::setDefault(QLocale{QLocale::German});
    TestWindow window;
    window->set_view(View::kTable);
    window->run("copy");
    EXPECT_TRUE(QApplication::clipboard()->text().contains(QStringLiteral("6442450944")));
    window->edit_field("system.nic", "800Gbit/s");
    window->run("copy-command");
    EXPECT_EQ(QApplication::clipboard()->text(), QStringLiteral("refit compare reshard-one-domain --set system.nic=800Gbit/s --method hybrid,gather-broadcast"));
    QLocale::setDefault(QLocale::c());
}

TEST(Window, GrowsItsTextToTwiceAndKeepsItApart) {
    TestWindow window;
    for (int i = 0; i < 20; ++i) {
        window->run("larger-text");
    }
    window.settle();
    // Without Q_OBJECT, findChild takes any widget for a ScenarioPanel.
    const ScenarioPanel* panel = nullptr;
    for (const auto* widget : window->findChildren<QWidget*>()) {
        panel = panel != nullptr ? panel : dynamic_cast<const ScenarioPanel*>(widget);
    }
    ASSERT_NE(panel, nullptr);
    const auto labels = panel->findChildren<QLabel*>();
    EXPECT_GT(labels.size(), 10);
    for (auto* one : labels) {
        for (auto* other : labels) {
            if (one != other && one->isVisible() && other->isVisible() && one->parent() == other->parent()) {
                EXPECT_FALSE(one->geometry().intersects(other->geometry())) << one->text().toStdString() << " and " << other->text().toStdString();
            }
        }
    }
    for (int i = 0; i < 20; ++i) {
        window->run("smaller-text");
    }
}

}  // namespace
}  // namespace refit::gui
