// SPDX-License-Identifier: Apache-2.0
// What the window reads and writes: scenarios, pictures, plans, and what it remembers of itself.
#include <algorithm>
#include <string>

#include <QApplication>
#include <QClipboard>
#include <QDir>
#include <QFileDialog>
#include <QInputDialog>
#include <QLineEdit>
#include <QSettings>
#include <QStandardPaths>

#include "export.hpp"
#include "main_window.hpp"
#include "refit/gui/open.hpp"
#include "refit/io/json_file.hpp"
#include "scene_view.hpp"
#include "text.hpp"

namespace refit::gui {
void MainWindow::open_dialog(const QString& title, bool is_measurement) {
    auto* dialog = new QFileDialog{this, title, {}, is_measurement ? QStringLiteral("Reports (*.json)") : QStringLiteral("Scenarios, plans, reports (*.json *.cbor *.yaml *.yml);;All files (*)")};
    dialog->setOption(QFileDialog::DontUseNativeDialog);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& file) { open(file.toStdString()); });
    dialog->open();
}

void MainWindow::save(bool asks) {
    const auto write = [this](const std::string& file) {
        const auto written = io::write_whole(file, scenario_text(question().draft));
        if (written) {
            file_ = file;
        }
        tell(text(written ? "Saved " + file : lines_of(written.error()).front()));
    };
    if (!asks) {
        write(file_);
        return;
    }
    auto* dialog = new QFileDialog{this, QStringLiteral("Save the scenario"), {}, QStringLiteral("Scenarios (*.json)")};
    dialog->setOption(QFileDialog::DontUseNativeDialog);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setDefaultSuffix(QStringLiteral("json"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &QFileDialog::fileSelected, this, [write](const QString& file) { write(file.toStdString()); });
    dialog->open();
}

void MainWindow::export_dialog() {
    if (!shown_) {
        return;
    }
    auto* dialog = new QFileDialog{this, QStringLiteral("Export this view"), {}, QStringLiteral("Pictures and data (*.png *.svg *.pdf *.csv *.json *.trace.json)")};
    dialog->setOption(QFileDialog::DontUseNativeDialog);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->selectFile(text(name_of(active_state().view)) + QStringLiteral(".png"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& file) {
        const auto written = write_view(*shown_, active_state(), file.toStdString(), {theme(), static_cast<double>(active().width()), static_cast<double>(active().height()), 2.0});
        tell(written ? QStringLiteral("Wrote ") + file : text(lines_of(written.error()).front()));
    });
    dialog->open();
}

void MainWindow::send_plan() {
    if (!shown_ || !shown_->a.plan) {
        tell(QStringLiteral("There is no plan yet"));
        return;
    }
    auto* dialog = new QFileDialog{this, QStringLiteral("Save the plan for the executor"), {}, QStringLiteral("Plans (*.json)")};
    dialog->setOption(QFileDialog::DontUseNativeDialog);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->selectFile(QStringLiteral("plan.json"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& file) {
        const auto written = io::write_whole(file.toStdString(), plan_text(*shown_));
        if (!written) {
            tell(text(lines_of(written.error()).front()));
            return;
        }
        const auto command = QStringLiteral("./run exec %1").arg(file);
        QApplication::clipboard()->setText(command);
        QInputDialog::getText(this, QStringLiteral("Run it"), QStringLiteral("The plan is saved. This command, also on the clipboard, runs it and writes a report\nthat Ctrl+M lays over the prediction:"), QLineEdit::Normal, command);
    });
    dialog->open();
}

QString MainWindow::autosave_file() const {
    if (!settings_file_.isEmpty()) {
        return settings_file_ + QStringLiteral(".autosave.json");
    }
    const auto folder = QStandardPaths::writableLocation(QStandardPaths::AppDataLocation);
    if (folder.isEmpty() || !QDir{}.mkpath(folder)) {
        return {};
    }
    return folder + QStringLiteral("/autosave.json");
}

void MainWindow::save_settings() {
    QSettings settings = settings_file_.isEmpty() ? QSettings{QStringLiteral("Refit"), QStringLiteral("refit-gui")} : QSettings{settings_file_, QSettings::IniFormat};
    settings.setValue(QStringLiteral("geometry"), saveGeometry());
    settings.setValue(QStringLiteral("docks"), saveState());
    settings.setValue(QStringLiteral("theme"), tastes_.theme ? (*tastes_.theme == Theme::kDark ? QStringLiteral("dark") : QStringLiteral("light")) : QStringLiteral("system"));
    settings.setValue(QStringLiteral("view"), text(std::string{name_of(state().view)}));
    settings.setValue(QStringLiteral("beside"), tastes_.beside ? text(name_of(*tastes_.beside)) : QString{});
    settings.setValue(QStringLiteral("recent"), recent_.files());
    settings.setValue(QStringLiteral("filter"), text(state().filter.text));
    settings.setValue(QStringLiteral("text-scale"), tastes_.text_scale);
    settings.setValue(QStringLiteral("reduced-motion"), tastes_.has_reduced_motion);
}

void MainWindow::load_settings() {
    const QSettings settings = settings_file_.isEmpty() ? QSettings{QStringLiteral("Refit"), QStringLiteral("refit-gui")} : QSettings{settings_file_, QSettings::IniFormat};
    if (settings.status() != QSettings::NoError) {
        tell(QStringLiteral("What was remembered of the window cannot be read; it starts afresh"));
        return;
    }
    restoreGeometry(settings.value(QStringLiteral("geometry")).toByteArray());
    restoreState(settings.value(QStringLiteral("docks")).toByteArray());
    const auto theme = settings.value(QStringLiteral("theme")).toString();
    tastes_.theme = theme == QStringLiteral("dark") ? std::optional{Theme::kDark} : theme == QStringLiteral("light") ? std::optional{Theme::kLight} : std::nullopt;
    tastes_.text_scale = std::clamp(settings.value(QStringLiteral("text-scale"), 1.0).toDouble(), 0.7, 2.0);
    tastes_.has_reduced_motion = settings.value(QStringLiteral("reduced-motion"), false).toBool();
    if (const auto view = parse_view(settings.value(QStringLiteral("view")).toString().toStdString())) {
        auto next = state();
        next.view = *view;
        views_ = History<ViewState>{next};
    }
    if (const auto beside = parse_view(settings.value(QStringLiteral("beside")).toString().toStdString())) {
        set_beside(*beside);
    }
    recent_.set(settings.value(QStringLiteral("recent")).toStringList());
    search_->setText(settings.value(QStringLiteral("filter")).toString());
}

}  // namespace refit::gui
