// SPDX-License-Identifier: Apache-2.0
// What the commands of the window do.
#include <algorithm>
#include <filesystem>
#include <utility>

#include <QApplication>
#include <QClipboard>
#include <QFile>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QTimer>

#include "main_window.hpp"
#include "panels.hpp"
#include "refit/gui/open.hpp"
#include "refit/gui/table.hpp"
#include "refit/io/json_file.hpp"
#include "scene_view.hpp"
#include "text.hpp"
#include "view_panes.hpp"

namespace refit::gui {
namespace {

constexpr double kPlaySeconds = 8.0;  ///< Of the whole transfer on screen.

template <class T>
T next_of(T value, std::size_t count) {
    return static_cast<T>((static_cast<std::size_t>(value) + 1) % count);
}

}  // namespace

void MainWindow::open(const std::string& target) {
    constexpr std::uintmax_t kLarge = 256U << 10U;
    std::error_code error;
    if (std::filesystem::is_regular_file(target, error) && std::filesystem::file_size(target, error) > kLarge) {
        load(target);
    } else {
        take_opened(target, open_any(target, question(), library_));
    }
}

void MainWindow::take_opened(const std::string& target, Result<Opened> opened) {
    if (!opened) {
        faults_ = std::move(opened.error());
        refresh();
        const bool is_forgotten = recent_.forget_missing(text(target));
        tell(text(target) + (is_forgotten ? QStringLiteral(" is not there any more; it is not listed any longer") : QStringLiteral(" could not be opened")));
        return;
    }
    recent_.add(text(target));
    if (opened->what == "measurement") {
        measured_ = opened->measured;
    }
    file_ = opened->what == "scenario" && std::filesystem::exists(target) ? target : std::string{};
    tell(text("Opened as a " + opened->what + ": " + target));
    start(std::move(*opened));
    if (!measured_.empty()) {
        set_view(View::kCompare);
    }
}

void MainWindow::start(Opened opened) {
    if (!opened.measured.empty()) {
        measured_ = std::move(opened.measured);
    }
    auto edited = edits_.present();
    edited.question = std::move(opened.question);
    edits_ = answer_ ? edits_ : History<Edited>{edited};
    faults_.clear();
    compose();
    change(edited);
    if (!answer_) {
        ask(false);
    }
    refresh();
}

void MainWindow::start_first() {
    const auto saved = autosave_file();
    if (QFile::exists(saved)) {
        if (auto opened = open_any(saved.toStdString(), {}, library_)) {
            opened->question.origin.clear();
            start(std::move(*opened));
            tell(QStringLiteral("Recovered what was being edited; Ctrl+O opens something else"));
            return;
        }
        QFile::remove(saved);
    }
    open("reshard-one-domain");
}

/// A step that undo takes back. Steps in a row with the same key are one.
void MainWindow::change(const Edited& edited, const std::string& key) {
    const auto before = edits_.present();
    edits_.push(edited, key);
    if (before.filter != edited.filter) {
        auto next = state();
        next.filter = edited.filter;
        views_.push(next, "filter");
    }
    if (before.question != edited.question) {
        ask(false);
        if (const auto file = autosave_file(); !file.isEmpty()) {
            (void)io::write_whole(file.toStdString(), scenario_text(edited.question.draft));
        }
    }
    if (before.pinned != edited.pinned) {
        compose();
    }
    refresh();
}

void MainWindow::edit_field(const std::string& field, const std::string& value) {
    auto edited = edits_.present();
    set_field(edited.question.draft, field, value);
    edited.question.plan = nullptr;
    change(edited);
}

void MainWindow::slide_field(const std::string& field, const std::string& value, bool is_final) {
    auto edited = edits_.present();
    set_field(edited.question.draft, field, value);
    edited.question.plan = nullptr;
    const auto is_new = edited != edits_.present();
    edits_.push(edited, "slide:" + field);
    if (is_final) {
        edits_.seal();
    }
    if (is_new || is_final) {
        ask(!is_final);
        refresh_side();
    }
}

void MainWindow::apply(const Suggestion& suggestion) {
    auto edited = edits_.present();
    edited.question.draft.apply(suggestion);
    change(edited);
}

std::string MainWindow::set_any(const std::string& setting) {
    auto edited = edits_.present();
    if (const auto set = apply_setting(edited.question.draft, setting); !set) {
        return set.error().front().message;
    }
    edited.question.plan = nullptr;
    change(edited);
    return {};
}

void MainWindow::set_method(Method method, bool is_a) {
    auto edited = edits_.present();
    (is_a ? edited.question.method : edited.question.against) = method;
    if (is_a) {
        edited.question.plan = nullptr;
    } else {
        edited.pinned = nullptr;
    }
    change(edited);
}

std::string MainWindow::set_filter(const std::string& words) {
    auto filter = parse_filter(words);
    if (!filter) {
        return filter.error().front().message;
    }
    auto edited = edits_.present();
    edited.filter = std::move(*filter);
    if (edited.filter.terms.empty()) {
        edited.filter.text.clear();
    }
    if (edited.filter != edits_.present().filter) {
        change(edited, "filter");
    }
    return {};
}

void MainWindow::look(const ViewState& next) {
    views_.push(next);
    refresh();
}

void MainWindow::select(const Target& target) {
    auto next = state();
    next.selection = target;
    if (target.kind == Target::Kind::kTensor) {
        next.tensor = target.a;
    } else if (target.kind == Target::Kind::kMethod && answer_ && static_cast<Method>(target.a) != question().method) {
        next.selection = target;
    }
    look(next);
}

void MainWindow::set_view(View view) {
    auto next = state();
    next.view = view;
    next.scroll = 0.0;
    look(next);
}

void MainWindow::set_beside(std::optional<View> view) {
    tastes_.beside = view;
    beside_scroll_ = 0.0;
    panes_->show_second(view.has_value());
    refresh();
}

/// Shows a view in the pane that commands act on.
void MainWindow::look_at(ViewState next, View view) {
    if (panes_->active() == 1) {
        tastes_.beside = view;
        beside_scroll_ = 0.0;
    } else {
        next.view = view;
        next.scroll = 0.0;
    }
    look(next);
}

void MainWindow::scroll(double pixels, std::size_t pane) {
    const auto to = std::clamp(state_of(pane).scroll + pixels, 0.0, panes_->picture(pane).scene().most_scroll);
    if (pane == 1) {
        beside_scroll_ = to;
    } else {
        auto next = state();
        next.scroll = to;
        views_.push(next, "scroll");
    }
    refresh();
}

void MainWindow::set_theme(std::optional<Theme> theme) {
    tastes_.theme = theme;
    apply_theme();
}

void MainWindow::zoom(double factor, double about) {
    auto next = state();
    const auto window = next.window.value_or(TimeWindow{0.0, end()});
    next.window = zoomed(window, window.from + about * window.length(), factor, end());
    if (next.window->length() > 0.9999 * end()) {
        next.window.reset();
    }
    views_.push(next, "zoom");
    refresh();
}

void MainWindow::pan(double share) {
    auto next = state();
    if (next.window) {
        next.window = panned(*next.window, share, end());
        views_.push(next, "pan");
        refresh();
    } else {
        scroll(share * 300.0, panes_->active());
    }
}

void MainWindow::drill(const Target& target, int by) {
    if (!shown_) {
        return;
    }
    auto next = state();
    const auto now = static_cast<int>(grouping_of(*shown_, active_state()));
    next.grouping = static_cast<Grouping>(std::clamp(now + by, 0, static_cast<int>(kGroupings) - 1));
    if (target.is_set()) {
        next.selection = target;
    }
    look(next);
}

void MainWindow::play_step() {
    auto next = state();
    const auto step = tastes_.has_reduced_motion ? end() / 10.0 : end() * player_->interval() / 1000.0 / kPlaySeconds;
    next.now = next.now.value_or(0.0) + step;
    if (*next.now >= end()) {
        next.now.reset();
        player_->stop();
    }
    views_.push(next, "play");
    refresh();
}

void MainWindow::make_handlers() {
    for (const auto view : kViews) {
        handlers_["view-" + std::string{name_of(view)}] = [this, view] { look_at(state(), view); };
    }
    handlers_["coarser"] = [this] { drill({}, -1); };
    handlers_["finer"] = [this] { drill({}, 1); };
    handlers_["direction"] = [this] {
        auto next = state();
        next.direction = next_of(next.direction, 4);
        look(next);
    };
    handlers_["listing"] = [this] {
        auto next = state();
        next.listing = next_of(next.listing, kListings.size());
        look_at(next, View::kTable);
    };
    handlers_["differences"] = [this] {
        auto next = state();
        next.shows_only_differences = !next.shows_only_differences;
        look_at(next, View::kCompare);
    };
    handlers_["split"] = [this] {
        // The timeline beside what it is of; the flows beside the timeline.
        set_beside(tastes_.beside ? std::nullopt : std::optional{state().view == View::kTimeline ? View::kFlows : View::kTimeline});
    };
    handlers_["other-view"] = [this] {
        panes_->activate(tastes_.beside ? 1 - panes_->active() : 0);
        active().setFocus();
    };
    handlers_["fit-all"] = [this] {
        auto next = state();
        next.window.reset();
        next.grouping.reset();
        next.scroll = 0.0;
        beside_scroll_ = 0.0;
        look(next);
    };
    handlers_["next"] = [this] { active().step(1); active().select_focused(); };
    handlers_["previous"] = [this] { active().step(-1); active().select_focused(); };
    handlers_["back"] = [this] { if (views_.can_undo()) { views_.undo(); refresh(); } };
    handlers_["forward"] = [this] { if (views_.can_redo()) { views_.redo(); refresh(); } };
    handlers_["theme"] = [this] { set_theme(!tastes_.theme ? std::optional{Theme::kDark} : *tastes_.theme == Theme::kDark ? std::optional{Theme::kLight} : std::nullopt); };
    handlers_["larger-text"] = [this] { tastes_.text_scale = std::min(2.0, tastes_.text_scale + 0.1); apply_theme(); };
    handlers_["smaller-text"] = [this] { tastes_.text_scale = std::max(0.7, tastes_.text_scale - 0.1); apply_theme(); };
    handlers_["reset-layout"] = [this] { restoreState(first_layout_); };
    handlers_["search"] = [this] { search_->setFocus(); search_->selectAll(); };
    handlers_["clear"] = [this] {
        if (state().selection.is_set() || state().now) {
            auto next = state();
            next.selection = {};
            next.now.reset();
            player_->stop();
            look(next);
        } else {
            search_->clear();
            (void)set_filter({});
        }
    };
    handlers_["palette"] = [this] {
        auto* dialog = new PaletteDialog{[this](std::string_view id) { run(id); }, this};
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        dialog->show();
    };
    handlers_["keys"] = [this] {
        auto* dialog = new KeysDialog{this};
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        dialog->show();
    };
    handlers_["quit"] = [this] { close(); };
}

void MainWindow::make_time_handlers() {
    handlers_["zoom-in"] = [this] { zoom(0.7, 0.5); };
    handlers_["zoom-out"] = [this] { zoom(1.0 / 0.7, 0.5); };
    handlers_["pan-left"] = [this] { pan(-0.2); };
    handlers_["pan-right"] = [this] { pan(0.2); };
    handlers_["fit-selection"] = [this] {
        if (shown_ && state().selection.kind == Target::Kind::kTask && shown_->a.course.run) {
            const auto& run = shown_->a.course.run->run;
            const auto task = state().selection.a;
            auto next = state();
            const auto length = std::max(run.end[task] - run.start[task], end() * 1e-5);
            next.window = zoomed({run.start[task], run.start[task] + length}, run.start[task] + length / 2.0, 1.4, end());
            look(next);
        }
    };
    handlers_["play"] = [this] {
        if (tastes_.has_reduced_motion) {
            play_step();
        } else {
            player_->isActive() ? player_->stop() : player_->start();
        }
    };
    handlers_["motion"] = [this] {
        tastes_.has_reduced_motion = !tastes_.has_reduced_motion;
        player_->stop();
        tell(tastes_.has_reduced_motion ? QStringLiteral("Reduced motion: Space moves by a tenth") : QStringLiteral("Space plays the transfer"));
    };
}

void MainWindow::restore(bool is_undo) {
    if (is_undo ? !edits_.can_undo() : !edits_.can_redo()) {
        return;
    }
    const auto before = edits_.present();
    is_undo ? edits_.undo() : edits_.redo();
    const auto& now = edits_.present();
    if (before.filter != now.filter) {
        const QSignalBlocker blocked{search_};
        search_->setText(text(now.filter.text));
        auto next = state();
        next.filter = now.filter;
        views_.push(next, "filter");
    }
    faults_.clear();
    if (before.question != now.question) {
        ask(false);
    }
    compose();
    refresh();
}

void MainWindow::make_scenario_handlers() {
    handlers_["open"] = [this] { open_dialog(QStringLiteral("Open a scenario, recipe, plan or report"), false); };
    handlers_["open-measurement"] = [this] { open_dialog(QStringLiteral("Open a measured report"), true); };
    handlers_["save"] = [this] { save(file_.empty()); };
    handlers_["save-as"] = [this] { save(true); };
    handlers_["export"] = [this] { export_dialog(); };
    handlers_["send"] = [this] { send_plan(); };
    handlers_["undo"] = [this] { restore(true); };
    handlers_["redo"] = [this] { restore(false); };
    handlers_["copy"] = [this] {
        if (shown_) {
            const auto table = make_table(*shown_, state(), state().listing);
            QApplication::clipboard()->setText(text(to_tsv(table, state().selection.is_set() ? std::vector<Target>{state().selection} : std::vector<Target>{})));
            tell(QStringLiteral("Copied as a table"));
        }
    };
    handlers_["copy-command"] = [this] {
        QApplication::clipboard()->setText(text(command_of(question())));
        tell(QStringLiteral("Copied:  ") + text(command_of(question())));
    };
    handlers_["pin"] = [this] {
        auto edited = edits_.present();
        edited.pinned = edited.pinned ? nullptr : answer_;
        change(edited);
        tell(edited.pinned ? QStringLiteral("Pinned as B; P again lets it go") : QStringLiteral("B is a method of this scenario again"));
    };
    handlers_["swap"] = [this] {
        auto edited = edits_.present();
        std::swap(edited.question.method, edited.question.against);
        edited.question.plan = nullptr;
        change(edited);
    };
    handlers_["reset"] = [this] {
        auto edited = edits_.present();
        std::vector<std::string> changed;
        for (const auto& [name, field] : edited.question.draft.fields()) {
            if (field.precedence > io::Precedence::kFile) {
                changed.push_back(name);
            }
        }
        for (const auto& name : changed) {
            set_field(edited.question.draft, name, {});
        }
        change(edited);
    };
    handlers_["example-small"] = [this] { open("reshard-one-domain"); };
    handlers_["example-large"] = [this] { open("deepseek-v3-h100"); };
}

}  // namespace refit::gui
