// SPDX-License-Identifier: Apache-2.0
#include "panels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include <QComboBox>
#include <QCompleter>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLineEdit>
#include <QListWidget>
#include <QProgressBar>
#include <QPushButton>
#include <QSignalBlocker>
#include <QSlider>
#include <QTableWidget>
#include <QVBoxLayout>

#include "refit/gui/open.hpp"
#include "text.hpp"

namespace refit::gui {
namespace {

constexpr std::array kMethods{Method::kHybrid, Method::kGatherBroadcast, Method::kDirect, Method::kStriped, Method::kM2n, Method::kOptimal};
constexpr int kSliderSteps = 120;

QComboBox* method_box(const QString& name) {
    auto* box = new QComboBox;
    box->setAccessibleName(name);
    for (const auto method : kMethods) {
        box->addItem(text(title_of(method)), static_cast<int>(method));
    }
    return box;
}

}  // namespace

ScenarioPanel::ScenarioPanel(const io::Library& library, QWidget* parent) : QWidget{parent} {
    auto* column = new QVBoxLayout{this};
    column->setContentsMargins(10, 8, 10, 8);
    faults_ = new QWidget;
    faults_->setObjectName(QStringLiteral("faults"));
    fault_rows_ = new QVBoxLayout{faults_};
    fault_rows_->setContentsMargins(0, 0, 0, 6);
    faults_->hide();
    column->addWidget(faults_);
    add_methods(*column);
    add_slider(*column, "system.nic", QStringLiteral("NIC rate"), 50.0, 1600.0, QStringLiteral("Gbit/s"));
    add_slider(*column, "system.nvlink", QStringLiteral("NVLink rate"), 100.0, 1800.0, QStringLiteral("GB/s"));
    add_fields(*column, library);
    add_any(*column);
    column->addStretch();
}

void ScenarioPanel::add_methods(QVBoxLayout& column) {
    auto* form = new QFormLayout;
    a_ = method_box(QStringLiteral("Method A, which the views show"));
    b_ = method_box(QStringLiteral("Method B, which it is compared with"));
    form->addRow(QStringLiteral("A"), a_);
    form->addRow(QStringLiteral("B"), b_);
    column.addLayout(form);
    for (auto* box : {a_, b_}) {
        connect(box, &QComboBox::activated, this, [this, box](int) {
            if (on_method) {
                on_method(static_cast<Method>(box->currentData().toInt()), box == a_);
            }
        });
    }
}

void ScenarioPanel::add_slider(QVBoxLayout& column, const std::string& field, const QString& title, double least, double most, const QString& unit) {
    auto* label = new QLabel{title};
    auto* slider = new QSlider{Qt::Horizontal};
    slider->setRange(0, kSliderSteps);
    slider->setAccessibleName(title);
    slider->setObjectName(text(field));
    column.addWidget(label);
    column.addWidget(slider);
    slides_.push_back({field, unit.toStdString(), least, most, slider, label});
    const auto index = slides_.size() - 1;
    connect(slider, &QSlider::valueChanged, this, [this, index](int) {
        const auto& slide = slides_[index];
        if (!is_showing_ && on_slide) {
            on_slide(slide.field, value_of_slider(slide), !slide.slider->isSliderDown());
        }
    });
    connect(slider, &QSlider::sliderReleased, this, [this, index] {
        const auto& slide = slides_[index];
        if (on_slide) {
            on_slide(slide.field, value_of_slider(slide), true);
        }
    });
}

std::string ScenarioPanel::value_of_slider(const Slide& slide) {
    const auto share = static_cast<double>(slide.slider->value()) / kSliderSteps;
    const auto value = slide.least * std::pow(slide.most / slide.least, share);
    return std::to_string(std::lround(value)) + slide.unit;
}

void ScenarioPanel::add_fields(QVBoxLayout& column, const io::Library& library) {
    auto* form = new QFormLayout;
    form->setRowWrapPolicy(QFormLayout::WrapLongRows);
    form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    for (const auto& field : edit_fields()) {
        auto* edit = new QLineEdit;
        edit->setPlaceholderText(text(field.example));
        edit->setAccessibleName(text(field.title));
        edit->setObjectName(text(field.field));
        edit->setToolTip(text(field.field + ", for example " + field.example));
        if (field.field == "model" || field.field == "system") {
            QStringList names;
            for (const auto& name : field.field == "model" ? library.models() : library.systems()) {
                names << text(name);
            }
            auto* completer = new QCompleter{names, edit};
            completer->setFilterMode(Qt::MatchContains);
            edit->setCompleter(completer);
        }
        form->addRow(text(field.title), edit);
        edits_[field.field] = edit;
        connect(edit, &QLineEdit::editingFinished, this, [this, edit, name = field.field] {
            if (edit->isModified() && on_edit) {
                edit->setModified(false);
                on_edit(name, edit->text().trimmed().toStdString());
            }
        });
    }
    column.addLayout(form);
}

void ScenarioPanel::add_any(QVBoxLayout& column) {
    auto* edit = new QLineEdit;
    edit->setObjectName(QStringLiteral("any-field"));
    edit->setPlaceholderText(QStringLiteral("fabric.nics.trainer:17=down"));
    edit->setAccessibleName(QStringLiteral("Any other field, as FIELD=VALUE"));
    auto* why = new QLabel;
    why->setWordWrap(true);
    why->hide();
    column.addWidget(new QLabel{QStringLiteral("Any other field")});
    column.addWidget(edit);
    column.addWidget(why);
    connect(edit, &QLineEdit::returnPressed, this, [this, edit, why] {
        const auto fault = on_setting ? on_setting(edit->text().trimmed().toStdString()) : std::string{};
        why->setText(text(fault));
        why->setVisible(!fault.empty());
        if (fault.empty()) {
            edit->clear();
        }
    });
}

void ScenarioPanel::show_question(const Question& question, const Answer* answer, const Faults& faults) {
    is_showing_ = true;
    a_->setCurrentIndex(a_->findData(static_cast<int>(question.method)));
    b_->setCurrentIndex(b_->findData(static_cast<int>(question.against)));
    for (const auto& [field, edit] : edits_) {
        const auto* set = question.draft.find(field);
        const auto value = set != nullptr ? set->text : answer != nullptr ? value_of(*answer, field) : std::string{};
        if (!edit->isModified()) {
            edit->setText(text(value));
        }
        const bool is_changed = set != nullptr && set->precedence > io::Precedence::kFile;
        auto font = edit->font();
        font.setBold(is_changed);
        edit->setFont(font);
    }
    for (const auto& slide : slides_) {
        const auto value = answer != nullptr ? value_of(*answer, slide.field) : std::string{};
        double number = 0.0;
        if (!slide.slider->isSliderDown() && std::sscanf(value.c_str(), "%lf", &number) == 1 && number > 0.0 && value.ends_with(slide.unit)) {
            const QSignalBlocker blocked{slide.slider};
            slide.slider->setValue(static_cast<int>(std::lround(std::log(number / slide.least) / std::log(slide.most / slide.least) * kSliderSteps)));
        }
        const auto* set = question.draft.find(slide.field);
        slide.label->setText(slide.slider->accessibleName() + QStringLiteral(":  ") + text(set != nullptr ? set->text : value));
    }
    show_faults(faults);
    is_showing_ = false;
}

void ScenarioPanel::show_faults(const Faults& faults) {
    while (auto* item = fault_rows_->takeAt(0)) {
        if (auto* widget = item->widget()) {
            widget->hide();
            widget->deleteLater();
        }
        delete item;
    }
    constexpr std::size_t kMost = 12;
    for (std::size_t i = 0; i < std::min(kMost, faults.size()); ++i) {
        const auto& fault = faults[i];
        auto* label = new QLabel{text(fault.message + (fault.where.empty() ? "" : "\n" + fault.where))};
        label->setWordWrap(true);
        label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
        label->setAccessibleName(QStringLiteral("Fault: ") + label->text());
        fault_rows_->addWidget(label);
        if (fault.nearest) {
            auto* button = new QPushButton{text("Use " + fault.nearest->field + " = " + fault.nearest->value)};
            button->setToolTip(text(fault.nearest->note));
            connect(button, &QPushButton::clicked, this, [this, suggestion = *fault.nearest] {
                if (on_apply) {
                    on_apply(suggestion);
                }
            });
            fault_rows_->addWidget(button);
        }
    }
    if (faults.size() > kMost) {
        fault_rows_->addWidget(new QLabel{QStringLiteral("and %1 more").arg(faults.size() - kMost)});
    }
    faults_->setVisible(!faults.empty());
}

FittingLabel::FittingLabel() { setWordWrap(true); }

void FittingLabel::set_texts(const QStringList& texts) {
    texts_ = texts;
    setToolTip(whole());
    fit();
}

void FittingLabel::resizeEvent(QResizeEvent* event) {
    QLabel::resizeEvent(event);
    fit();
}

void FittingLabel::fit() {
    const auto room = contentsRect();
    const QRect paper{0, 0, room.width(), 1 << 14};
    const auto fits = [&](const QString& text) { return fontMetrics().boundingRect(paper, Qt::TextWordWrap, text).height() <= room.height(); };
    const auto fitting = std::ranges::find_if(texts_, fits);
    setText(fitting != texts_.end() ? *fitting : texts_.isEmpty() ? QString{} : texts_.back());
}

BusyBar::BusyBar() : progress_{new QProgressBar} {
    auto* row = new QHBoxLayout{this};
    row->setContentsMargins(0, 0, 0, 0);
    progress_->setRange(0, 100);
    progress_->setMaximumWidth(220);
    progress_->setAccessibleName(QStringLiteral("Progress"));
    auto* cancel = new QPushButton{QStringLiteral("Cancel")};
    row->addWidget(progress_);
    row->addWidget(cancel);
    connect(cancel, &QPushButton::clicked, this, [this] {
        if (on_cancel) {
            on_cancel();
        }
    });
    hide();
}

void BusyBar::tell(const QString& what, double done) {
    progress_->setValue(static_cast<int>(done * 100.0));
    progress_->setFormat(what);
    show();
}

PaletteDialog::PaletteDialog(std::function<void(std::string_view id)> run, QWidget* parent) : QDialog{parent} {
    setWindowTitle(QStringLiteral("Commands"));
    setObjectName(QStringLiteral("palette"));
    resize(480, 420);
    auto* column = new QVBoxLayout{this};
    auto* search = new QLineEdit;
    search->setPlaceholderText(QStringLiteral("Type what you want to do"));
    search->setAccessibleName(QStringLiteral("Search commands"));
    auto* list = new QListWidget;
    list->setAccessibleName(QStringLiteral("Commands"));
    column->addWidget(search);
    column->addWidget(list);
    const auto fill = [list](const QString& words) {
        list->clear();
        for (const auto& command : search_commands(words.toStdString())) {
            auto line = QString::fromUtf8(command.text.data(), static_cast<qsizetype>(command.text.size()));
            for (const auto& key : keys_of(command)) {
                line += QStringLiteral("    ") + text(key);
            }
            auto* item = new QListWidgetItem{line, list};
            item->setData(Qt::UserRole, text(std::string{command.id}));
        }
        list->setCurrentRow(0);
    };
    connect(search, &QLineEdit::textChanged, list, fill);
    const auto choose = [this, list, run = std::move(run)] {
        if (const auto* item = list->currentItem()) {
            const auto id = item->data(Qt::UserRole).toString().toStdString();
            accept();
            run(id);
        }
    };
    connect(search, &QLineEdit::returnPressed, this, choose);
    connect(list, &QListWidget::itemActivated, this, choose);
    fill({});
    search->setFocus();
}

KeysDialog::KeysDialog(QWidget* parent) : QDialog{parent} {
    setWindowTitle(QStringLiteral("Keys"));
    setObjectName(QStringLiteral("keys"));
    resize(560, 640);
    auto* column = new QVBoxLayout{this};
    const auto all = commands();
    auto* table = new QTableWidget{static_cast<int>(all.size()), 2};
    table->setAccessibleName(QStringLiteral("Commands and their keys"));
    table->setHorizontalHeaderLabels({QStringLiteral("Key"), QStringLiteral("What it does")});
    table->verticalHeader()->hide();
    table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    for (int row = 0; row < table->rowCount(); ++row) {
        const auto& command = all[static_cast<std::size_t>(row)];
        QStringList keys;
        for (const auto& key : keys_of(command)) {
            keys << text(key);
        }
        table->setItem(row, 0, new QTableWidgetItem{keys.join(QStringLiteral("  or  "))});
        table->setItem(row, 1, new QTableWidgetItem{text(std::string{command.text})});
    }
    table->horizontalHeader()->setStretchLastSection(true);
    table->resizeColumnToContents(0);
    column->addWidget(table);
    column->addWidget(new QLabel{QStringLiteral("Arrows walk through the elements of a picture, Enter selects; drag over a time axis to zoom,\nShift+drag to move; double click for finer groups, Backspace for coarser ones.")});
}

QString to_html(const Detail& detail) {
    auto html = QStringLiteral("<h3>%1</h3>").arg(text(detail.title).toHtmlEscaped());
    for (const auto& [name, value] : detail.lines) {
        html += name.empty() ? QStringLiteral("<p style='margin:0 0 4px 0'>%1</p>").arg(text(value).toHtmlEscaped())
                             : QStringLiteral("<p style='margin:4px 0 4px 0'><b>%1</b><br>%2</p>").arg(text(name).toHtmlEscaped(), text(value).toHtmlEscaped());
    }
    return html;
}

}  // namespace refit::gui
