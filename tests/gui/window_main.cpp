// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <iostream>

#include <QApplication>
#include <QTemporaryDir>

#include <gtest/gtest.h>

/// Tests run on no screen and leave the user's own settings alone.
int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    const QTemporaryDir folder;
    const auto place = folder.path().toStdString();
    setenv("QT_QPA_PLATFORM", "offscreen", 1);
    for (const auto* name : {"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"}) {
        setenv(name, place.c_str(), 1);
    }
    QApplication::setStyle(QStringLiteral("Fusion"));
    qInstallMessageHandler([](QtMsgType type, const QMessageLogContext&, const QString& message) {
        // The screen that nobody sees has no window manager to tell sizes to.
        if (type != QtDebugMsg && !message.contains(QLatin1String{"propagateSizeHints"}) && !message.contains(QLatin1String{"#fillpattern"})) {
            std::cerr << message.toStdString() << "\n";
        }
    });
    const QApplication application{argc, argv};
    return RUN_ALL_TESTS();
}
