// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <utility>

#include "faults_text.hpp"
#include "refit/io/field_options.hpp"
#include "refit/io/json_file.hpp"
#include "refit/shell_word.hpp"

namespace refit::cli {
namespace {

/// How the user asked, without the flags that set scenario fields.
std::string command_text(const Options& options) {
    auto text = program_name() + " " + name_of(options.command);
    text += options.what.empty() ? "" : " " + options.what;
    text += options.scenario.empty() ? "" : " " + shell_word(options.scenario);
    text += options.plan_scenario.empty() ? "" : " --scenario " + shell_word(options.plan_scenario);
    for (const auto& method : options.methods) {
        text += " --method " + shell_word(method);
    }
    for (const auto& run : options.lost) {
        text += " --lose " + shell_word(run);
    }
    for (const auto& run : options.gained) {
        text += " --gain " + shell_word(run);
    }
    for (const auto& step : options.steps) {
        text += " --step-time " + shell_word(step);
    }
    return text;
}

/// The value of an environment variable that stands for a flag: REFIT_TRAIN_GPUS for --train-gpus.
std::optional<std::string> from_environment(const std::string& flag, std::string& variable) {
    variable = "REFIT_";
    for (const char c : flag.substr(2)) {
        variable += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    const char* value = std::getenv(variable.c_str());
    return value != nullptr && *value != '\0' ? std::optional<std::string>{value} : std::nullopt;
}

}  // namespace

Result<io::Library> open_library() { return io::Library::open(io::data_folder(REFIT_SOURCE_DATA_DIR)); }

Result<io::ScenarioDraft> collect_draft(const Options& options, const io::Library& library, Faults& faults) {
    io::ScenarioDraft draft;
    if (!options.scenario.empty()) {
        auto read = library.scenario(options.scenario);
        if (!read) {
            return read;
        }
        draft = std::move(*read);
    }
    using Kind = io::DraftField::Kind;
    for (const auto& option : io::field_options()) {
        std::string variable;
        if (const auto value = from_environment(option.flag, variable)) {
            draft.set(option.field, {*value, Kind::kText, io::Precedence::kEnvironment, variable});
        }
    }
    for (std::size_t i = 0; i < options.fields.size(); ++i) {
        const auto& [field, value] = options.fields[i];
        if (auto fault = io::check_field_name(field)) {
            fault->where = options.field_flags[i];
            faults.push_back(std::move(*fault));
            continue;
        }
        draft.set(field, {value, Kind::kText, io::Precedence::kFlag, options.field_flags[i]});
    }
    return draft;
}

std::string refusal_text(const Faults& faults, const Options& options, const io::ScenarioDraft* draft,
                         const io::Library* library, bool has_color) {
    return describe_faults(faults, {command_text(options), options.fields, draft, library}, has_color);
}

std::string which_refit(const Options& options) {
    return "which refit? Name a scenario, a scenario file, or a NeMo RL recipe:\n  " + program_name() + " " +
           name_of(options.command) +
           " deepseek-v3-h100\n"
           "or give --model, --train, --generate, --train-gpus, --gen-gpus and --system.";
}

int refuse(const Faults& faults, const Options& options, const io::ScenarioDraft* draft, const io::Library* library) {
    std::cerr << refusal_text(faults, options, draft, library, options.has_color && isatty(STDERR_FILENO) == 1);
    return exit_code_of(faults);
}

int write_output(const std::string& text, const Options& options) {
    if (options.output.empty()) {
        std::cout << text << std::flush;
        return std::cout ? kOk : kIoError;
    }
    const auto written = io::write_whole(options.output, text);
    return written ? kOk : refuse(written.error(), options);
}

}  // namespace refit::cli
