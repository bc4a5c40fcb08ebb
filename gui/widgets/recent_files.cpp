// SPDX-License-Identifier: Apache-2.0
#include "recent_files.hpp"

#include <utility>

#include <QAction>
#include <QFileInfo>
#include <QMenu>

namespace refit::gui {

void RecentFiles::show_in(QMenu* menu, std::function<void(const QString& file)> open) {
    menu_ = menu;
    open_ = std::move(open);
    fill();
}

void RecentFiles::add(const QString& file) {
    const QFileInfo info{file};
    if (!info.exists()) {
        return;
    }
    const auto path = info.absoluteFilePath();
    files_.removeAll(path);
    files_.prepend(path);
    set(files_);
}

bool RecentFiles::forget_missing(const QString& file) {
    const QFileInfo info{file};
    if (info.exists() || files_.removeAll(info.absoluteFilePath()) == 0) {
        return false;
    }
    fill();
    return true;
}

void RecentFiles::set(const QStringList& files) {
    files_ = files.mid(0, kMost);
    fill();
}

void RecentFiles::fill() {
    if (menu_ == nullptr) {
        return;
    }
    menu_->clear();
    for (const auto& file : files_) {
        // An ampersand in a name is no key of the menu.
        auto name = QFileInfo{file}.fileName() + QStringLiteral("   ") + QFileInfo{file}.absolutePath();
        auto* action = menu_->addAction(name.replace(QLatin1Char{'&'}, QStringLiteral("&&")));
        action->setToolTip(file);
        // The menu is filled anew while the file opens: what the action holds must outlive it.
        QObject::connect(action, &QAction::triggered, menu_, [this, file] { open_(QString{file}); }, Qt::QueuedConnection);
    }
    if (files_.isEmpty()) {
        menu_->addAction(QStringLiteral("No file was opened yet"))->setEnabled(false);
        return;
    }
    menu_->addSeparator();
    QObject::connect(menu_->addAction(QStringLiteral("Forget these files")), &QAction::triggered, menu_, [this] { set({}); }, Qt::QueuedConnection);
}

}  // namespace refit::gui
