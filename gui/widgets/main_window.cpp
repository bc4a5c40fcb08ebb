// SPDX-License-Identifier: Apache-2.0
#include "main_window.hpp"

#include <algorithm>
#include <utility>

#include <QAction>
#include <QApplication>
#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QDropEvent>
#include <QFile>
#include <QFileInfo>
#include <QLineEdit>
#include <QMenuBar>
#include <QMimeData>
#include <QPixmapCache>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QStatusBar>
#include <QTextBrowser>
#include <QTimer>
#include <QToolBar>
#include <QUrl>

#include "panels.hpp"
#include "refit/gui/commands.hpp"
#include "refit/gui/open.hpp"
#include "refit/gui/table.hpp"
#include "scene_view.hpp"
#include "text.hpp"
#include "view_panes.hpp"

namespace refit::gui {
namespace {

QColor ink(Theme theme, Ink what) { return to_color(colour_of(theme, what)); }

QPalette palette_of(Theme theme) {
    QPalette palette;
    palette.setColor(QPalette::Window, ink(theme, Ink::kPanel));
    palette.setColor(QPalette::Base, ink(theme, Ink::kBackground));
    palette.setColor(QPalette::AlternateBase, ink(theme, Ink::kPanel));
    palette.setColor(QPalette::Button, ink(theme, Ink::kPanel));
    palette.setColor(QPalette::ToolTipBase, ink(theme, Ink::kPanel));
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText, QPalette::ToolTipText}) {
        palette.setColor(role, ink(theme, Ink::kText));
    }
    palette.setColor(QPalette::PlaceholderText, ink(theme, Ink::kMuted));
    palette.setColor(QPalette::Highlight, ink(theme, Ink::kAccent));
    palette.setColor(QPalette::HighlightedText, to_color(text_on(colour_of(theme, Ink::kAccent))));
    palette.setColor(QPalette::Link, ink(theme, Ink::kAccent));
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) {
        palette.setColor(QPalette::Disabled, role, ink(theme, Ink::kMuted));
    }
    return palette;
}

}  // namespace

MainWindow::MainWindow(io::Library library, const QString& settings) : library_{std::move(library)}, settings_file_{settings} {
    install_scene_accessibility();
    setWindowTitle(QStringLiteral("Refit"));
    setAcceptDrops(true);
    resize(1440, 900);
    make_view();
    make_docks();
    make_handlers();
    make_time_handlers();
    make_scenario_handlers();
    make_menus();
    player_ = new QTimer{this};
    player_->setInterval(33);
    connect(player_, &QTimer::timeout, this, [this] { play_step(); });
    first_layout_ = saveState();
    load_settings();
    apply_theme();
}

MainWindow::~MainWindow() {
    // Qt keeps what it drew of sliders and boxes, up to 10 MB, under keys that no other window has.
    QPixmapCache::clear();
}

void MainWindow::make_view() {
    panes_ = new ViewPanes;
    view().setObjectName(QStringLiteral("picture"));
    panes_->on_view = [this](std::size_t pane, View view) { pane == 0 ? set_view(view) : set_beside(view); };
    connect_pane(0);
    connect_pane(1);
    setCentralWidget(panes_);
    auto* bar = addToolBar(QStringLiteral("Search"));
    bar->setObjectName(QStringLiteral("search-bar"));
    search_ = new QLineEdit;
    search_->setObjectName(QStringLiteral("search"));
    search_->setPlaceholderText(QStringLiteral("Search and filter: tensor:*experts* link:nic stage:0-3 bytes>1GB   ( / )"));
    search_->setAccessibleName(QStringLiteral("Search and filter"));
    search_->setToolTip(text(filter_help()));
    search_->setClearButtonEnabled(true);
    bar->addWidget(search_);
    connect(search_, &QLineEdit::textChanged, this, [this](const QString& words) {
        const auto why = set_filter(words.trimmed().toStdString());
        search_->setStyleSheet(why.empty() ? QString{} : QStringLiteral("QLineEdit { border: 2px solid %1; }").arg(ink(theme(), Ink::kCritical).name()));
        search_->setToolTip(text(why.empty() ? filter_help() : why));
        tell(text(why));
    });
    connect(search_, &QLineEdit::returnPressed, this, [this] { active().setFocus(); });
}

void MainWindow::connect_pane(std::size_t pane) {
    auto& view = panes_->picture(pane);
    view.on_select = [this](const Target& target) { select(target); };
    view.on_drill = [this](const Target& target) { drill(target, 1); };
    view.on_rise = [this] { drill({}, -1); };
    view.on_zoom = [this](double factor, double about) { zoom(factor, about); };
    view.on_pan = [this](double share) { pan(share); };
    view.on_range = [this](double from, double to) {
        const auto window = state().window.value_or(TimeWindow{0.0, end()});
        auto next = state();
        next.window = TimeWindow{window.from + from * window.length(), window.from + to * window.length()};
        look(next);
    };
    view.on_scroll = [this, pane](double pixels) { scroll(pixels, pane); };
}

void MainWindow::make_docks() {
    panel_ = new ScenarioPanel{library_, this};
    panel_->on_edit = [this](const std::string& field, const std::string& value) { edit_field(field, value); };
    panel_->on_slide = [this](const std::string& field, const std::string& value, bool is_final) { slide_field(field, value, is_final); };
    panel_->on_method = [this](Method method, bool is_a) { set_method(method, is_a); };
    panel_->on_apply = [this](const Suggestion& suggestion) { apply(suggestion); };
    panel_->on_setting = [this](const std::string& setting) { return set_any(setting); };
    auto* scroller = new QScrollArea;
    scroller->setWidgetResizable(true);
    scroller->setFrameShape(QFrame::NoFrame);
    scroller->setWidget(panel_);
    scroller->setMinimumWidth(250);
    dock(QStringLiteral("Scenario"), scroller, Qt::LeftDockWidgetArea);
    details_ = new QTextBrowser;
    details_->setAccessibleName(QStringLiteral("Details"));
    details_->setMinimumWidth(250);
    details_->setFrameShape(QFrame::NoFrame);
    dock(QStringLiteral("Details"), details_, Qt::RightDockWidgetArea);
    result_ = new FittingLabel;
    result_->setContentsMargins(10, 2, 10, 2);
    result_->setMaximumHeight(44);
    result_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    result_->setAccessibleName(QStringLiteral("Result"));
    dock(QStringLiteral("Result"), result_, Qt::BottomDockWidgetArea);
    strip_ = new SceneView;
    strip_->setAccessibleName(QStringLiteral("Time strip"));
    strip_->setFixedHeight(62);
    strip_->on_range = [this](double from, double to) {
        auto next = state();
        next.window = TimeWindow{from * end(), to * end()};
        look(next);
    };
    strip_->on_zoom = [this](double factor, double about) { zoom(factor, about); };
    auto* time = dock(QStringLiteral("Time strip"), strip_, Qt::BottomDockWidgetArea);
    splitDockWidget(findChild<QDockWidget*>(QStringLiteral("Result")), time, Qt::Vertical);
    setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
    setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
    busy_ = new BusyBar;
    busy_->on_cancel = [this] {
        answers_.cancel();
        is_busy_ = false;
        refresh_side();
        tell(QStringLiteral("Cancelled; the last answer stays"));
    };
    statusBar()->addPermanentWidget(busy_);
}

QDockWidget* MainWindow::dock(const QString& title, QWidget* widget, Qt::DockWidgetArea area) {
    auto* frame = new QDockWidget{title, this};
    frame->setObjectName(title);
    frame->setWidget(widget);
    addDockWidget(area, frame);
    return frame;
}

void MainWindow::make_menus() {
    std::map<std::string_view, QMenu*> menus;
    for (const auto& command : commands()) {
        auto*& menu = menus[command.menu];
        if (menu == nullptr) {
            menu = menuBar()->addMenu(text(command.menu));
        }
        auto* action = menu->addAction(text(command.text));
        action->setObjectName(text(command.id));
        QList<QKeySequence> keys;
        for (const auto& key : keys_of(command)) {
            keys << QKeySequence{text(key)};
        }
        action->setShortcuts(keys);
        connect(action, &QAction::triggered, this, [this, id = command.id] { run(id); });
        if (command.id == "open") {
            auto* recent = menu->addMenu(QStringLiteral("Open again"));
            recent->setObjectName(QStringLiteral("recent"));
            recent_.show_in(recent, [this](const QString& file) { open(file.toStdString()); });
        }
    }
    auto* docks = menus["View"]->addMenu(QStringLiteral("Panels"));
    for (auto* dock : findChildren<QDockWidget*>()) {
        docks->addAction(dock->toggleViewAction());
    }
}

void MainWindow::run(std::string_view command) {
    const auto handler = handlers_.find(command);
    if (handler != handlers_.end()) {
        ++runs_[std::string{command}];
        handler->second();
    }
}

std::size_t MainWindow::times_run(std::string_view command) const {
    const auto found = runs_.find(command);
    return found == runs_.end() ? 0 : found->second;
}

/// Runs on this window's thread what the worker has found, unless something newer was asked since.
void MainWindow::deliver(const Worker::IsStale& is_stale, std::function<void()> what) {
    QMetaObject::invokeMethod(this, [is_stale, what = std::move(what)] {
        if (!is_stale()) {
            what();
        }
    }, Qt::QueuedConnection);
}

Steps MainWindow::steps(const Worker::IsStale& is_stale) {
    return {is_stale,
            [this, is_stale](const std::string& what, double done) { deliver(is_stale, [this, what, done] { busy_->tell(text(what), done); }); },
            [this, is_stale](std::shared_ptr<const Answer> first) {
                deliver(is_stale, [this, first = std::move(first)] { take(first, {}, true); });
            }};
}

void MainWindow::ask(bool is_draft) {
    auto question = edits_.present().question;
    question.is_draft = is_draft;
    is_busy_ = true;
    answers_.post([this, question = std::move(question), base = answer_](const Worker::IsStale& is_stale) {
        auto made = answer(question, library_, steps(is_stale), base.get());
        deliver(is_stale, [this, made = std::move(made)] { made ? take(*made, {}) : take(nullptr, made.error()); });
    });
}

/// Reads a large file on the worker. Until it is read, all stays as it is, also where it is given up.
void MainWindow::load(const std::string& target) {
    is_busy_ = true;
    busy_->tell(QStringLiteral("reading ") + QFileInfo{text(target)}.fileName(), 0.0);
    answers_.post([this, target, current = question()](const Worker::IsStale& is_stale) {
        auto opened = open_any(target, current, library_);
        deliver(is_stale, [this, target, opened = std::move(opened)] {
            is_busy_ = false;
            take_opened(target, opened);
        });
    });
}

/// `is_first`: there is more to come.
void MainWindow::take(std::shared_ptr<const Answer> made, Faults faults, bool is_first) {
    is_busy_ = is_first;
    faults_ = std::move(faults);
    if (made) {
        const bool is_other = !answer_ || answer_->scenario.cluster.gpus() != made->scenario.cluster.gpus() || answer_->scenario.model.id() != made->scenario.model.id();
        answer_ = std::move(made);
        faults_ = answer_->a.report.refused;
        if (is_other) {
            // What was pointed at is not there any more.
            auto next = state();
            next.selection = {};
            next.window.reset();
            next.tensor = ViewState{}.tensor;
            views_ = History<ViewState>{next};
        } else if (state().window && state().window->to > end()) {
            auto next = state();
            next.window.reset();
            views_.push(next, "window");
        }
    }
    compose();
    refresh();
}

void MainWindow::compose() {
    shown_ = answer_;
    if (shown_ && !measured_.empty()) {
        shown_ = with_measured(*shown_, measured_);
    }
    if (shown_ && edits_.present().pinned) {
        shown_ = with_pinned(*shown_, *edits_.present().pinned);
    }
}

ViewState MainWindow::active_state() const { return state_of(panes_->active()); }
SceneView& MainWindow::active() const { return panes_->picture(panes_->active()); }
SceneView& MainWindow::view() const { return panes_->picture(0); }
SceneView& MainWindow::beside() const { return panes_->picture(1); }

/// Two views share all but which one it is and how far it is scrolled.
ViewState MainWindow::state_of(std::size_t pane) const {
    auto how = state();
    if (pane == 1) {
        how.view = tastes_.beside.value_or(how.view);
        how.scroll = beside_scroll_;
    }
    return how;
}

void MainWindow::show_in(std::size_t pane) {
    auto& view = panes_->picture(pane);
    auto how = state_of(pane);
    view.set_selection(how.selection);
    if (shown_ && (faults_.empty() || !shown_->a.report.refused.empty())) {
        view.show_scene([shown = shown_, how = std::move(how)](double width, double height) { return make_scene(*shown, how, width, height); });
    } else if (!faults_.empty()) {
        auto lines = lines_of(faults_);
        lines.emplace_back("Undo (Ctrl+Z) takes the last change back; the left panel applies a suggestion with one click.");
        view.show_scene([lines](double width, double height) { return make_message("This cannot be computed", lines, width, height); });
    } else {
        view.show_scene([](double width, double height) {
            return make_message("Computing", {"the first answer takes a second or two"}, width, height);
        });
    }
}

void MainWindow::refresh() {
    show_in(0);
    if (tastes_.beside) {
        show_in(1);
    }
    if (shown_ && (faults_.empty() || !shown_->a.report.refused.empty())) {
        strip_->show_scene([shown = shown_, how = state()](double width, double height) { return make_strip(*shown, how, width, height); });
    }
    refresh_side();
}

void MainWindow::refresh_side() {
    panel_->show_question(question(), answer_.get(), faults_);
    details_->setHtml(shown_ ? to_html(details_of(*shown_, state())) : QString{});
    QStringList results;
    for (const auto& result : shown_ ? result_texts(*shown_) : std::vector<std::string>{}) {
        results.append(text(result));
    }
    result_->set_texts(results);
    busy_->setVisible(is_busy_ && busy_->isVisible());
    const auto* name = question().draft.find("name");
    setWindowTitle(text((name != nullptr ? name->text : std::string{"a scenario"}) + (edits_.can_undo() ? " (changed)" : "") + " - Refit"));
    panes_->show_tab(0, state().view);
    panes_->show_tab(1, state_of(1).view);
    if (auto* undo = findChild<QAction*>(QStringLiteral("undo"))) {
        undo->setEnabled(edits_.can_undo());
        findChild<QAction*>(QStringLiteral("redo"))->setEnabled(edits_.can_redo());
    }
}

void MainWindow::apply_theme() {
    const QSignalBlocker blocked{this};
    QApplication::setPalette(palette_of(theme()));
    auto font = QApplication::font();
    font.setFamily(font_family());
    font.setPixelSize(static_cast<int>(13.0 * tastes_.text_scale));
    QApplication::setFont(font);
    for (auto* one : {&view(), &beside(), strip_}) {
        one->set_style({theme(), tastes_.text_scale});
    }
    panes_->set_theme(theme());
    refresh_side();
}

Theme MainWindow::theme() const {
    if (tastes_.theme) {
        return *tastes_.theme;
    }
    // Qt 6.4 cannot tell the system's theme: the palette at the start does.
    static const bool is_dark = QApplication::palette().color(QPalette::Window).lightness() < 128;
    return is_dark ? Theme::kDark : Theme::kLight;
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    if (event->mimeData()->hasUrls()) {
        event->acceptProposedAction();
    }
}

void MainWindow::dropEvent(QDropEvent* event) {
    for (const auto& url : event->mimeData()->urls()) {
        if (url.isLocalFile()) {
            open(url.toLocalFile().toStdString());
        }
    }
}

void MainWindow::closeEvent(QCloseEvent* event) {
    save_settings();
    QFile::remove(autosave_file());
    QMainWindow::closeEvent(event);
}

void MainWindow::finish() {
    do {
        answers_.finish();
        QCoreApplication::sendPostedEvents(this);
    } while (is_busy_);
    view().finish();
    beside().finish();
    strip_->finish();
}

QString MainWindow::details() const { return details_->toPlainText(); }
QString MainWindow::result() const { return result_->whole(); }
bool MainWindow::is_playing() const noexcept { return player_->isActive(); }
void MainWindow::tell(const QString& words) { statusBar()->showMessage(words, 8000); }
double MainWindow::end() const { return shown_ ? std::max(1e-9, shown_->a.course.seconds()) : 1.0; }

}  // namespace refit::gui
