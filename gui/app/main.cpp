// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <QApplication>
#include <QTimer>

#include "arguments.hpp"
#include "export.hpp"
#include "main_window.hpp"
#include "refit/gui/open.hpp"

namespace {

using namespace refit;
using namespace refit::gui;

/// The same codes as the command line's: usage 2, input 3, cannot run 4, not supported 5, files 6.
int exit_code(const Faults& faults) {
    switch (faults.front().code) {
        case ErrorCode::kUsage:
            return 2;
        case ErrorCode::kInvalidInput:
            return 3;
        case ErrorCode::kInfeasible:
            return 4;
        case ErrorCode::kUnsupported:
            return 5;
        case ErrorCode::kIo:
            break;
    }
    return 6;
}

int refuse(const Faults& faults) {
    for (const auto& line : lines_of(faults)) {
        std::cerr << "refit-gui: " << line << "\n";
    }
    return exit_code(faults);
}

Result<Opened> first_question(const Arguments& arguments, const io::Library& library) {
    auto opened = open_any(arguments.target.empty() ? "reshard-one-domain" : arguments.target, {}, library);
    if (!opened) {
        return opened;
    }
    for (const auto& setting : arguments.settings) {
        if (auto set = apply_setting(opened->question.draft, setting); !set) {
            return fail(std::move(set.error()));
        }
    }
    opened->question.method = arguments.method.value_or(opened->question.method);
    opened->question.against = arguments.against.value_or(opened->question.against);
    if (!arguments.measured.empty()) {
        auto measured = open_any(arguments.measured, opened->question, library);
        if (!measured) {
            return measured;
        }
        opened->measured = std::move(measured->measured);
    }
    return opened;
}

int export_view(const Arguments& arguments, const io::Library& library) {
    ViewState state;
    state.view = *arguments.view;
    state.grouping = arguments.grouping;
    auto filter = parse_filter(arguments.filter);
    if (!filter) {
        return refuse(filter.error());
    }
    state.filter = std::move(*filter);
    const auto opened = first_question(arguments, library);
    if (!opened) {
        return refuse(opened.error());
    }
    auto made = answer(opened->question, library);
    if (!made) {
        return refuse(made.error());
    }
    if (!opened->measured.empty()) {
        made = with_measured(**made, opened->measured);
    }
    const auto written = write_view(**made, state, arguments.output, {arguments.theme.value_or(Theme::kLight), arguments.width, arguments.height, arguments.scale});
    return written ? 0 : refuse(written.error());
}

/// Qt's remarks on the machine are no answer to what was asked.
void quiet(QtMsgType type, const QMessageLogContext&, const QString& message) {
    if (type == QtCriticalMsg || type == QtFatalMsg) {
        std::cerr << "refit-gui: " << message.toStdString() << "\n";
    }
}

int show_window(const Arguments& arguments, const io::Library& library, int argc, char** argv) {
    qInstallMessageHandler(quiet);
    QApplication::setStyle(QStringLiteral("Fusion"));
    QApplication application{argc, argv};
    QApplication::setApplicationName(QStringLiteral("refit-gui"));
    MainWindow window{library, {}};
    if (arguments.theme) {
        window.set_theme(arguments.theme);
    }
    if (arguments.target.empty() && arguments.settings.empty()) {
        window.start_first();
    } else {
        auto opened = first_question(arguments, library);
        if (!opened) {
            return refuse(opened.error());
        }
        window.start(std::move(*opened));
        window.recent().add(QString::fromStdString(arguments.target));
    }
    window.show();
    if (!arguments.shot.empty()) {
        QTimer::singleShot(300, &window, [&] {
            window.resize(static_cast<int>(arguments.width), static_cast<int>(arguments.height));
            window.finish();
            QApplication::processEvents();
            window.finish();
            const bool is_written = window.grab().save(QString::fromStdString(arguments.shot));
            QApplication::exit(is_written ? 0 : 6);
        });
    }
    return QApplication::exec();
}

}  // namespace

int main(int argc, char** argv) {
    const auto arguments = parse_arguments({argv + 1, argv + argc});
    if (!arguments) {
        refuse(arguments.error());
        std::cerr << "Try: refit-gui --help\n";
        return 2;
    }
    if (arguments->shows_help || arguments->shows_version) {
        std::cout << (arguments->shows_help ? usage() : "refit-gui " REFIT_VERSION "\n");
        return 0;
    }
    const auto library = io::Library::open(io::data_folder(REFIT_SOURCE_DATA_DIR));
    if (!library) {
        return refuse(library.error());
    }
    if (arguments->view) {
        setenv("QT_QPA_PLATFORM", "offscreen", 1);
        qInstallMessageHandler(quiet);
        QGuiApplication application{argc, argv};
        return export_view(*arguments, *library);
    }
    return show_window(*arguments, *library, argc, argv);
}
