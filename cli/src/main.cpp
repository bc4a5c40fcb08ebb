// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "cells.hpp"
#include "compare_table.hpp"
#include "exit_code.hpp"
#include "explain_text.hpp"
#include "faults_text.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "records_text.hpp"
#include "refit/compare.hpp"
#include "refit/io/json_file.hpp"
#include "refit/io/library.hpp"
#include "refit/io/report_json.hpp"
#include "refit/quantity.hpp"

namespace refit::cli {
namespace {

namespace fs = std::filesystem;

/// REFIT_DATA, else the folder installed beside the program, else that of the source tree it was built from.
fs::path data_folder() {
    if (const char* folder = std::getenv("REFIT_DATA"); folder != nullptr && *folder != '\0') {
        return folder;
    }
    std::error_code error;
    const auto installed = fs::read_symlink("/proc/self/exe", error).parent_path().parent_path() / "share" / "refit";
    return fs::is_directory(installed / "models", error) ? installed : fs::path{REFIT_SOURCE_DATA_DIR};
}

/// How the user asked, without the flags that set scenario fields.
std::string command_text(const Options& options) {
    auto text = program_name() + (options.command == Command::kExplain ? " explain" : " compare");
    text += options.scenario.empty() ? "" : " " + quoted(options.scenario);
    for (const auto& method : options.methods) {
        text += " --method " + quoted(method);
    }
    for (const auto& step : options.steps) {
        text += " --step-time " + quoted(step);
    }
    return text;
}

int refuse(const Faults& faults, const Options& options, const io::ScenarioDraft* draft = nullptr,
           const io::Library* library = nullptr) {
    std::cerr << describe_faults(faults, {command_text(options), options.fields, draft, library},
                                 options.has_color && isatty(STDERR_FILENO) == 1);
    return exit_code_of(faults);
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

/// Scenario file, environment and flags, in rising precedence. Appends what is wrong with the flags to `faults`.
Result<io::ScenarioDraft> collect(const Options& options, const io::Library& library, Faults& faults) {
    io::ScenarioDraft draft;
    if (!options.scenario.empty()) {
        auto read = library.scenario(options.scenario);
        if (!read) {
            return read;
        }
        draft = std::move(*read);
    }
    using Kind = io::DraftField::Kind;
    for (const auto& option : field_options()) {
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

std::string config_text(const io::ScenarioDraft& draft) {
    std::string text;
    for (const auto& info : io::scenario_fields()) {
        const auto* field = draft.find(info.name);
        if (field != nullptr) {
            text += left(std::string{info.name}, 38) + " = " + left(field->text, 24) + "  # " + field->origin + "\n";
        } else {
            text += "# " + left(std::string{info.name}, 36) + "   " + left("default", 24) + "  # " + std::string{info.meaning} + "\n";
        }
    }
    return text;
}

/// The texts with the last one's unit behind each bare number: "60,120s" means 60 s and 120 s.
std::vector<std::string> with_shared_unit(std::vector<std::string> texts) {
    const auto unit_at = texts.empty() ? std::string::npos : texts.back().find_first_not_of("0123456789.");
    for (auto& text : texts) {
        if (unit_at != std::string::npos && !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos) {
            text += texts.back().substr(unit_at);
        }
    }
    return texts;
}

CompareRequest make_request(const Options& options, Faults& all_faults) {
    CompareRequest request;
    Faults faults;
    if (!options.methods.empty()) {
        request.methods.clear();
        for (const auto& name : options.methods) {
            const auto method = take(parse_method(name), faults);
            if (method && std::ranges::find(request.methods, *method) == request.methods.end()) {
                request.methods.push_back(*method);
            }
        }
    }
    if (!options.steps.empty()) {
        request.steps.clear();
        for (const auto& text : with_shared_unit(options.steps)) {
            if (const auto step = take(parse_duration(text), faults)) {
                request.steps.push_back(*step);
            }
        }
    }
    for (auto& fault : faults) {
        fault.where = fault.rule == "unknown-method" ? "--method" : "--step-time";
        if (fault.nearest && fault.nearest->field.empty()) {
            fault.message += ", for example --step-time " + fault.nearest->value;
            fault.nearest.reset();
        }
        all_faults.push_back(std::move(fault));
    }
    return request;
}

std::string rendered(const Report& report, const Scenario& scenario, const Options& options) {
    switch (options.format) {
        case Format::kJson:
            return io::to_json(report, scenario).dump(1) + "\n";
        case Format::kCsv:
            return report_csv(report);
        case Format::kMarkdown:
            return report_markdown(report);
        case Format::kTable:
            break;
    }
    if (options.command == Command::kExplain) {
        return explain_text(report, scenario);
    }
    return compare_table(report, scenario, options.scenario, !options.steps.empty());
}

int write(const std::string& text, const Options& options) {
    if (options.output.empty()) {
        std::cout << text << std::flush;
        return std::cout ? kOk : kIoError;
    }
    const auto written = io::write_whole(options.output, text);
    return written ? kOk : refuse(written.error(), options);
}

int run_comparison(const Options& options, const Scenario& scenario, CompareRequest request) {
    std::optional<Report> report;
    {
        Progress progress{options.shows_progress};
        request.progress = [&](std::string_view what, double done) { progress.tell(what, done); };
        report = compare(scenario, request);
    }
    const auto status = write(rendered(*report, scenario, options), options);
    const bool is_answered = std::ranges::any_of(report->methods, [](const MethodReport& method) { return method.refused.empty(); });
    return status != kOk ? status : is_answered ? kOk : kInfeasible;
}

int run(const Options& options) {
    const auto library = io::Library::open(data_folder());
    if (!library) {
        return refuse(library.error(), options);
    }
    Faults faults;
    auto request = make_request(options, faults);
    const auto draft = take(collect(options, *library, faults), faults);
    if (draft && options.prints_config && faults.empty()) {
        return write(config_text(*draft), options);
    }
    if (draft && draft->fields().empty() && faults.empty()) {
        return usage_error("which refit? Name a scenario (for example deepseek-v3-h100), a scenario file or a NeMo RL recipe,\n"
                           "or say it with --model, --train, --generate, --train-gpus, --gen-gpus and --system.");
    }
    const bool can_cure = faults.empty();
    const auto scenario = draft ? take(io::resolve(*draft, *library), faults) : std::nullopt;
    if (!faults.empty()) {
        return refuse(faults, options, can_cure && draft ? &*draft : nullptr, &*library);
    }
    const auto published = library->published();
    if (!published) {
        return refuse(published.error(), options, nullptr, nullptr);
    }
    request.published = *published;
    return run_comparison(options, *scenario, std::move(request));
}

}  // namespace
}  // namespace refit::cli

int main(int argc, char** argv) {
    try {
        const auto parsed = refit::cli::parse_options(argc, argv);
        if (const auto* code = std::get_if<refit::cli::ExitCode>(&parsed)) {
            return *code;
        }
        return refit::cli::run(std::get<refit::cli::Options>(parsed));
    } catch (const std::exception& error) {
        std::cerr << "refit: internal error: " << error.what() << "\nPlease report this with the command that you ran.\n";
        return refit::cli::kInternalError;
    }
}
