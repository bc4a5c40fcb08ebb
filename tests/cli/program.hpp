// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace refit::testing_cli {

/// What a program left behind.
struct Outcome {
    int code = -1;  ///< Exit code, or 128 and the signal.
    std::string out;
    std::string err;
};

/// How to run it. The environment holds nothing but PATH and what is named here.
struct Setting {
    std::map<std::string, std::string> environment;
    std::filesystem::path folder = ".";  ///< Working directory.
    std::string stdout_file;             ///< Where stdout goes instead, for example "/dev/full".
    bool has_stdout = true;              ///< Else stdout is closed.
    bool on_terminal = false;            ///< stdout and stderr are one terminal; all comes back in `out`.
};

/// Runs any program. Throws where it cannot be started.
[[nodiscard]] Outcome run_program(const std::vector<std::string>& words, const Setting& setting = {});

/// Runs the refit that was just built.
[[nodiscard]] Outcome run_refit(std::vector<std::string> arguments, const Setting& setting = {});

/// What a file holds; nothing where there is none.
[[nodiscard]] std::string file_text(const std::filesystem::path& file);

[[nodiscard]] std::vector<std::string> lines_of(const std::string& text);

/// Names in data/scenarios.
[[nodiscard]] std::vector<std::string> shipped_scenarios();

/// Runs `compare ... -o json`, expects exit 0, and parses what it prints.
[[nodiscard]] nlohmann::json compare_json(std::vector<std::string> arguments, const Setting& setting = {});

/// The method's entry in a report; fails the test and returns null where there is none.
[[nodiscard]] nlohmann::json method_of(const nlohmann::json& report, const std::string& name);

/// Whether `Setting::on_terminal` can be had: not where /dev/pts is not mounted.
[[nodiscard]] bool has_terminals();

}  // namespace refit::testing_cli
