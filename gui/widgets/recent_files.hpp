// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <QStringList>

class QMenu;

namespace refit::gui {

/// The files that were opened last, in a menu: the newest first, each once.
class RecentFiles {
public:
    static constexpr qsizetype kMost = 10;

    /// `open` is called with the file that is chosen.
    void show_in(QMenu* menu, std::function<void(const QString& file)> open);
    /// Puts a file first. What is no file, such as the name of a shipped scenario, is left out.
    void add(const QString& file);
    /// Takes a file out that is not there any more; one that is there stays. Returns whether it was taken out.
    bool forget_missing(const QString& file);
    void set(const QStringList& files);
    [[nodiscard]] const QStringList& files() const noexcept { return files_; }

private:
    void fill();

    QStringList files_;
    QMenu* menu_ = nullptr;
    std::function<void(const QString& file)> open_;
};

}  // namespace refit::gui
