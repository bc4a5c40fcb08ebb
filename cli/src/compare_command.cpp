// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cells.hpp"
#include "commands.hpp"
#include "compare_table.hpp"
#include "explain_text.hpp"
#include "faults_text.hpp"
#include "measured_table.hpp"
#include "progress.hpp"
#include "records_text.hpp"
#include "refit/compare.hpp"
#include "refit/io/measured_report.hpp"
#include "refit/io/report_json.hpp"
#include "refit/quantity.hpp"
#include "session.hpp"

namespace refit::cli {
namespace {

std::string config_text(const io::ScenarioDraft& draft) {
    std::string text;
    for (const auto& info : io::scenario_fields()) {
        bool is_set = false;
        for (const auto& [name, field] : draft.fields()) {
            if (io::is_instance(name, info)) {
                text += left(name, 38) + " = " + left(field.text, 24) + "  # " + field.origin + "\n";
                is_set = true;
            }
        }
        if (!is_set) {
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
    request.has_simulation = options.simulates;
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

std::string rendered(const Report& report,
                     const Scenario& scenario,
                     const std::vector<MeasuredRefit>& measured,
                     const Options& options) {
    if (!measured.empty()) {
        return options.format == Format::kJson  ? measured_json(report, measured, scenario.name)
               : options.format == Format::kCsv ? measured_csv(report, measured)
                                                : measured_table(report, measured, scenario.name, options.format == Format::kMarkdown);
    }
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

int answer(const Options& options,
           const Scenario& scenario,
           const std::vector<MeasuredRefit>& measured,
           CompareRequest request) {
    std::optional<Report> report;
    {
        Progress progress{options.shows_progress};
        request.progress = [&](std::string_view what, double done) { progress.tell(what, done); };
        report = compare(scenario, request);
    }
    const auto status = write_output(rendered(*report, scenario, measured, options), options);
    std::cerr << (options.format == Format::kJson ? std::string{} : describe_warnings(report->warnings));
    const bool is_answered = std::ranges::any_of(report->methods, [](const MethodReport& method) { return method.refused.empty(); });
    return status != kOk ? status : is_answered ? kOk : kInfeasible;
}

}  // namespace

int run_comparison(const Options& options, const io::Library& library) {
    Faults faults;
    auto request = make_request(options, faults);
    auto draft = take(collect_draft(options, library, faults), faults);
    if (draft && draft->find("model") == nullptr && !options.measured.empty()) {
        auto told = take(io::read_measured_scenario(options.measured.front()), faults);
        for (const auto& [name, field] : draft->fields()) {
            if (told) {
                told->set(name, field);
            }
        }
        draft = std::move(told);
    }
    if (draft && options.prints_config && faults.empty()) {
        return write_output(config_text(*draft), options);
    }
    if (draft && draft->fields().empty() && faults.empty()) {
        return usage_error(which_refit(options));
    }
    const bool can_cure = faults.empty();
    const auto scenario = draft ? take(io::resolve(*draft, library), faults) : std::nullopt;
    const auto measured = take(read_measured(options.measured), faults);
    if (!faults.empty()) {
        return refuse(faults, options, can_cure && draft ? &*draft : nullptr, &library);
    }
    const auto published = library.published();
    if (!published) {
        return refuse(published.error(), options);
    }
    request.published = *published;
    return answer(options, *scenario, *measured, std::move(request));
}

}  // namespace refit::cli
