// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <QMainWindow>

#include "edited.hpp"
#include "recent_files.hpp"
#include "refit/gui/history.hpp"
#include "refit/gui/open.hpp"
#include "refit/gui/views.hpp"
#include "refit/gui/worker.hpp"

class QDockWidget;
class QLineEdit;
class QTextBrowser;
class QTimer;

namespace refit::gui {

class BusyBar;
class FittingLabel;
class ScenarioPanel;
class SceneView;
class ViewPanes;

/// The program's window: one question, one selection, one filter and one window of time for all views.
class MainWindow : public QMainWindow {
public:
    /// `settings`: an INI file for what is remembered; empty: the user's usual place.
    MainWindow(io::Library library, const QString& settings);
    ~MainWindow() override;

    /// Opens what `open_any` takes, large files on a worker; faults are shown in place of the view.
    void open(const std::string& target);
    void start(Opened opened);
    /// Opens what was left unsaved by a crash, else the first example.
    void start_first();
    void run(std::string_view command);
    void edit_field(const std::string& field, const std::string& value);
    void slide_field(const std::string& field, const std::string& value, bool is_final);
    void apply(const Suggestion& suggestion);
    /// "FIELD=VALUE". Returns what is wrong with it, or an empty string.
    std::string set_any(const std::string& setting);
    void set_method(Method method, bool is_a);
    /// Returns why the text is no filter, or an empty string; the old filter then stays.
    std::string set_filter(const std::string& text);
    void select(const Target& target);
    void set_view(View view);
    /// A second view beside the first, of the same selection, filter and window of time; nothing: one view.
    void set_beside(std::optional<View> view);
    void set_theme(std::optional<Theme> theme);
    void save_settings();
    /// Waits until the answer and the pictures are there.
    void finish();

    [[nodiscard]] const ViewState& state() const noexcept { return views_.present(); }
    [[nodiscard]] const Question& question() const noexcept { return edits_.present().question; }
    [[nodiscard]] const Answer* shown() const noexcept { return shown_.get(); }
    [[nodiscard]] const Faults& faults() const noexcept { return faults_; }
    [[nodiscard]] Theme theme() const;
    [[nodiscard]] SceneView& view() const;
    [[nodiscard]] SceneView& beside() const;
    [[nodiscard]] ViewPanes& panes() const noexcept { return *panes_; }
    [[nodiscard]] ViewState active_state() const;  ///< Of the view that commands act on.
    [[nodiscard]] RecentFiles& recent() noexcept { return recent_; }
    [[nodiscard]] QString details() const;
    [[nodiscard]] QString result() const;
    [[nodiscard]] bool is_busy() const noexcept { return is_busy_; }
    [[nodiscard]] bool is_playing() const noexcept;
    [[nodiscard]] std::size_t times_run(std::string_view command) const;  ///< How often, by id.

protected:
    void closeEvent(QCloseEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;

private:
    void make_docks();
    void make_view();
    void connect_pane(std::size_t pane);
    QDockWidget* dock(const QString& title, QWidget* widget, Qt::DockWidgetArea area);
    void make_menus();
    void make_handlers();
    void make_time_handlers();
    void make_scenario_handlers();
    void restore(bool is_undo);
    void load_settings();
    void change(const Edited& edited, const std::string& key = {});
    void ask(bool is_draft);
    void load(const std::string& target);
    void take_opened(const std::string& target, Result<Opened> opened);
    void deliver(const Worker::IsStale& is_stale, std::function<void()> what);
    [[nodiscard]] Steps steps(const Worker::IsStale& is_stale);
    void take(std::shared_ptr<const Answer> answer, Faults faults, bool is_first = false);
    void compose();
    void look(const ViewState& state);
    void look_at(ViewState next, View view);
    void scroll(double pixels, std::size_t pane);
    void refresh();
    void show_in(std::size_t pane);
    [[nodiscard]] ViewState state_of(std::size_t pane) const;
    [[nodiscard]] SceneView& active() const;
    void refresh_side();
    void apply_theme();
    void zoom(double factor, double about);
    void pan(double share);
    void drill(const Target& target, int by);
    void play_step();
    void open_dialog(const QString& title, bool is_measurement);
    void save(bool asks);
    void export_dialog();
    void send_plan();
    void tell(const QString& text);
    [[nodiscard]] double end() const;
    [[nodiscard]] QString autosave_file() const;

    io::Library library_;
    QString settings_file_;
    History<Edited> edits_{Edited{}};
    History<ViewState> views_{ViewState{}};
    std::shared_ptr<const Answer> answer_;
    std::shared_ptr<const Answer> shown_;  ///< With what is measured and pinned.
    std::map<Method, Measured> measured_;
    Faults faults_;
    Tastes tastes_;
    bool is_busy_ = false;
    std::string file_;
    std::map<std::string, std::function<void()>, std::less<>> handlers_;
    std::map<std::string, std::size_t, std::less<>> runs_;
    QByteArray first_layout_;
    RecentFiles recent_;
    ViewPanes* panes_ = nullptr;
    double beside_scroll_ = 0.0;
    SceneView* strip_ = nullptr;
    ScenarioPanel* panel_ = nullptr;
    QTextBrowser* details_ = nullptr;
    FittingLabel* result_ = nullptr;
    QLineEdit* search_ = nullptr;
    BusyBar* busy_ = nullptr;
    QTimer* player_ = nullptr;
    Worker answers_;  // Last: its thread ends before what it answers to.
};

}  // namespace refit::gui
