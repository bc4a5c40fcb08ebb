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
#include <QLabel>
#include <QLineEdit>
#include <QMenuBar>
#include <QMimeData>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QSplitter>
#include <QStatusBar>
#include <QTabBar>
#include <QTextBrowser>
#include <QTimer>
#include <QToolBar>
#include <QUrl>
#include <QVBoxLayout>

#include "panels.hpp"
#include "refit/gui/commands.hpp"
#include "refit/gui/open.hpp"
#include "refit/gui/table.hpp"
#include "scene_view.hpp"

namespace refit::gui {
namespace {

QString text(std::string_view value) { return QString::fromUtf8(value.data(), static_cast<qsizetype>(value.size())); }

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

MainWindow::~MainWindow() = default;

void MainWindow::make_view() {
    auto* both = new QSplitter{Qt::Horizontal};
    both->setChildrenCollapsible(false);
    both->addWidget(make_pane(tabs_, view_, QStringLiteral("Picture")));
    both->addWidget(make_pane(beside_tabs_, beside_, QStringLiteral("Picture beside")));
    view_->setObjectName(QStringLiteral("picture"));
    beside_->parentWidget()->hide();
    setCentralWidget(both);
    connect(tabs_, &QTabBar::currentChanged, this, [this](int index) { set_view(static_cast<View>(index)); });
    connect(beside_tabs_, &QTabBar::currentChanged, this, [this](int index) { set_beside(static_cast<View>(index)); });
    make_search();
}

QWidget* MainWindow::make_pane(QTabBar*& tabs, SceneView*& view, const QString& name) {
    auto* pane = new QWidget;
    auto* column = new QVBoxLayout{pane};
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    tabs = new QTabBar;
    tabs->setAccessibleName(QStringLiteral("Views of ") + name.toLower());
    tabs->setExpanding(false);
    tabs->setDocumentMode(true);
    for (const auto one : kViews) {
        tabs->addTab(text(title_of(one)));
    }
    view = new SceneView;
    view->setAccessibleName(name);
    column->addWidget(tabs);
    column->addWidget(view, 1);
    view->on_select = [this](const Target& target) { select(target); };
    view->on_drill = [this](const Target& target) { drill(target, 1); };
    view->on_rise = [this] { drill({}, -1); };
    view->on_zoom = [this](double factor, double about) { zoom(factor, about); };
    view->on_pan = [this](double share) { pan(share); };
    view->on_range = [this](double from, double to) {
        const auto window = state().window.value_or(TimeWindow{0.0, end()});
        auto next = state();
        next.window = TimeWindow{window.from + from * window.length(), window.from + to * window.length()};
        look(next);
    };
    view->on_scroll = [this](double pixels) {
        auto next = state();
        next.scroll = std::max(0.0, next.scroll + pixels);
        views_.push(next, "scroll");
        refresh();
    };
    return pane;
}

void MainWindow::make_search() {
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
    connect(search_, &QLineEdit::returnPressed, view_, [this] { view_->setFocus(); });
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
    make_bottom_docks();
    make_status();
}

QDockWidget* MainWindow::dock(const QString& title, QWidget* widget, Qt::DockWidgetArea area) {
    auto* frame = new QDockWidget{title, this};
    frame->setObjectName(title);
    frame->setWidget(widget);
    addDockWidget(area, frame);
    return frame;
}

void MainWindow::make_bottom_docks() {
    result_ = new QLabel;
    result_->setWordWrap(true);
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
}

void MainWindow::make_status() {
    progress_ = new QProgressBar;
    progress_->setRange(0, 100);
    progress_->setMaximumWidth(220);
    progress_->setAccessibleName(QStringLiteral("Progress"));
    progress_->hide();
    cancel_ = new QPushButton{QStringLiteral("Cancel")};
    cancel_->hide();
    connect(cancel_, &QPushButton::clicked, this, [this] {
        answers_.cancel();
        is_busy_ = false;
        refresh_side();
        tell(QStringLiteral("Cancelled; the last answer stays"));
    });
    statusBar()->addPermanentWidget(progress_);
    statusBar()->addPermanentWidget(cancel_);
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

void MainWindow::ask(bool is_draft) {
    auto question = edits_.present().question;
    question.is_draft = is_draft;
    is_busy_ = true;
    answers_.post([this, question = std::move(question), base = answer_](const Worker::IsStale& is_stale) {
        const Steps steps{is_stale, [&](const std::string& what, double done) {
                              QMetaObject::invokeMethod(this, [this, is_stale, what, done] {
                                  if (!is_stale()) {
                                      progress_->setValue(static_cast<int>(done * 100.0));
                                      progress_->setFormat(text(what));
                                      progress_->setVisible(true);
                                      cancel_->setVisible(true);
                                  }
                              }, Qt::QueuedConnection);
                          }};
        auto made = answer(question, library_, steps, base.get());
        if (is_stale()) {
            return;
        }
        QMetaObject::invokeMethod(this, [this, is_stale, question, made = std::move(made)]() mutable {
            if (!is_stale()) {
                made ? take(std::move(*made), {}, question) : take(nullptr, std::move(made.error()), question);
            }
        }, Qt::QueuedConnection);
    });
}

void MainWindow::take(std::shared_ptr<const Answer> made, Faults faults, const Question& question) {
    is_busy_ = false;
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
    (void)question;
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

void MainWindow::show_in(SceneView& view, View what) {
    view.set_selection(state().selection);
    if (shown_ && (faults_.empty() || !shown_->a.report.refused.empty())) {
        auto how = state();
        how.view = what;
        view.show_scene([shown = shown_, how](double width, double height) { return make_scene(*shown, how, width, height); });
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
    show_in(*view_, state().view);
    if (tastes_.beside) {
        show_in(*beside_, *tastes_.beside);
    }
    if (shown_ && (faults_.empty() || !shown_->a.report.refused.empty())) {
        strip_->show_scene([shown = shown_, how = state()](double width, double height) { return make_strip(*shown, how, width, height); });
    }
    refresh_side();
}

void MainWindow::refresh_side() {
    panel_->show_question(question(), answer_.get(), faults_);
    details_->setHtml(shown_ ? to_html(details_of(*shown_, state())) : QString{});
    result_->setText(shown_ ? text(result_text(*shown_)) : QString{});
    progress_->setVisible(is_busy_ && progress_->isVisible());
    cancel_->setVisible(progress_->isVisible());
    const auto* name = question().draft.find("name");
    setWindowTitle(text((name != nullptr ? name->text : std::string{"a scenario"}) + (edits_.can_undo() ? " (changed)" : "") + " - Refit"));
    const QSignalBlocker blocked{tabs_};
    tabs_->setCurrentIndex(static_cast<int>(state().view));
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
    for (auto* one : {view_, beside_, strip_}) {
        one->set_style({theme(), tastes_.text_scale});
    }
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
    answers_.finish();
    QCoreApplication::sendPostedEvents(this);
    view_->finish();
    beside_->finish();
    strip_->finish();
}

QString MainWindow::details() const { return details_->toPlainText(); }
QString MainWindow::result() const { return result_->text(); }
bool MainWindow::is_playing() const noexcept { return player_->isActive(); }
void MainWindow::tell(const QString& words) { statusBar()->showMessage(words, 8000); }
double MainWindow::end() const { return shown_ ? std::max(1e-9, shown_->a.course.seconds()) : 1.0; }

}  // namespace refit::gui
