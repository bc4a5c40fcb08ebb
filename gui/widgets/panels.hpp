// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <QDialog>
#include <QLabel>
#include <QStringList>
#include <QWidget>

#include "refit/gui/answer.hpp"
#include "refit/gui/commands.hpp"
#include "refit/gui/table.hpp"

class QComboBox;
class QLineEdit;
class QProgressBar;
class QSlider;
class QVBoxLayout;

namespace refit::gui {

/// The scenario's fields, the two methods, and what is wrong with them.
class ScenarioPanel : public QWidget {
public:
    ScenarioPanel(const io::Library& library, QWidget* parent);

    /// Shows what is asked; `answer` may be of an older question, or null.
    void show_question(const Question& question, const Answer* answer, const Faults& faults);

    std::function<void(const std::string& field, const std::string& value)> on_edit;
    /// While a slider moves, and when it is let go.
    std::function<void(const std::string& field, const std::string& value, bool is_final)> on_slide;
    std::function<void(Method method, bool is_a)> on_method;
    std::function<void(const Suggestion&)> on_apply;
    /// Of any field, as "FIELD=VALUE"; returns what is wrong with it.
    std::function<std::string(const std::string&)> on_setting;

private:
    void add_methods(QVBoxLayout& column);
    void add_fields(QVBoxLayout& column, const io::Library& library);
    void add_any(QVBoxLayout& column);
    void add_slider(QVBoxLayout& column, const std::string& field, const QString& title, double least, double most, const QString& unit);
    void show_faults(const Faults& faults);

    struct Slide {
        std::string field;
        std::string unit;
        double least;
        double most;
        QSlider* slider;
        QLabel* label;
    };
    [[nodiscard]] static std::string value_of_slider(const Slide& slide);

    QComboBox* a_ = nullptr;
    QComboBox* b_ = nullptr;
    std::map<std::string, QLineEdit*> edits_;
    std::vector<Slide> slides_;
    QWidget* faults_ = nullptr;
    QVBoxLayout* fault_rows_ = nullptr;
    bool is_showing_ = false;
};

/// What is being worked on, how far it is, and a button that gives it up.
class BusyBar : public QWidget {
public:
    BusyBar();

    /// `done`: a share. Range: 0 to 1. Shows the bar.
    void tell(const QString& what, double done);

    std::function<void()> on_cancel;

private:
    QProgressBar* progress_;
};

/// Shows the first of its texts that fits; the last where none does. Its tooltip is the first.
class FittingLabel : public QLabel {
public:
    FittingLabel();

    void set_texts(const QStringList& texts);
    [[nodiscard]] QString whole() const { return texts_.isEmpty() ? QString{} : texts_.front(); }

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void fit();

    QStringList texts_;
};

/// A list of commands that shrinks while one types; Enter runs the one that is marked.
class PaletteDialog : public QDialog {
public:
    PaletteDialog(std::function<void(std::string_view id)> run, QWidget* parent);
};

/// Every command with its keys.
class KeysDialog : public QDialog {
public:
    explicit KeysDialog(QWidget* parent);
};

/// Name and value lines as rich text.
[[nodiscard]] QString to_html(const Detail& detail);

}  // namespace refit::gui
