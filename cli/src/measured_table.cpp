// SPDX-License-Identifier: Apache-2.0
#include "measured_table.hpp"

#include <cstdio>
#include <optional>

#include <nlohmann/json.hpp>

#include "cells.hpp"
#include "refit/io/json_file.hpp"
#include "refit/quantity.hpp"

namespace refit::cli {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostRows = 12;

class ReportReader {
public:
    ReportReader(const Json& json, std::string file) : json_{json}, file_{std::move(file)} {}

    Result<std::vector<MeasuredRefit>> run() {
        if (!json_.is_object() || json_.value("schema", Json{}) != "refit.report" ||
            !json_.contains("methods") || !json_["methods"].is_array()) {
            return fail(ErrorCode::kInvalidInput,
                        "schema",
                        "is no report: \"schema\" must be \"refit.report\", with a list \"methods\"",
                        file_);
        }
        std::vector<MeasuredRefit> measured;
        for (const auto& entry : json_["methods"]) {
            if (entry.is_object() && entry.value("kind", Json{}) == "measured") {
                if (auto one = read(entry)) {
                    measured.push_back(std::move(*one));
                }
            }
        }
        if (faults_.empty() && measured.empty()) {
            refuse("/methods", "no entry is of kind \"measured\"");
        }
        return faults_.empty() ? Result<std::vector<MeasuredRefit>>{std::move(measured)}
                               : fail(std::move(faults_));
    }

private:
    void refuse(const std::string& where, const std::string& message) {
        faults_.push_back({ErrorCode::kInvalidInput, "measured-report", message, file_ + ": " + where});
    }

    std::string text(const Json& object, const char* key) {
        const auto found = object.find(key);
        return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
    }

    /// A number of at least 0; `fallback` where it is missing.
    double number(const Json& object, const char* key, std::optional<double> fallback) {
        const auto found = object.find(key);
        if (found != object.end() && found->is_number() && found->get<double>() >= 0.0 &&
            found->get<double>() < 1e18) {
            return found->get<double>();
        }
        if (!fallback || found != object.end()) {
            refuse(std::string{"/methods/"} + key,
                   found == object.end() ? "is missing" : found->dump() + " is no number from 0 on");
        }
        return fallback.value_or(0.0);
    }

    std::optional<MeasuredRefit> read(const Json& entry) {
        MeasuredRefit one;
        one.file = file_;
        const auto method = take(parse_method(text(entry, "method")), faults_);
        one.method = method.value_or(one.method);
        const auto scenario = json_.value("scenario", Json::object());
        one.scenario = scenario.is_object() ? text(scenario, "name") : "";
        one.transport = text(entry, "transport");
        one.machine = text(json_, "machine");
        one.seconds = Seconds{number(entry, "seconds", std::nullopt)};
        one.low = Seconds{number(entry, "seconds_low", one.seconds.value())};
        one.high = Seconds{number(entry, "seconds_high", one.seconds.value())};
        if (entry.contains("predicted_seconds")) {
            one.machine_predicted = Seconds{number(entry, "predicted_seconds", std::nullopt)};
        }
        one.elements = static_cast<std::uint64_t>(number(entry, "elements", 0.0));
        one.delivered = Bytes{static_cast<std::uint64_t>(number(entry, "delivered_bytes", 0.0))};
        one.bus_bandwidth = number(entry, "bus_bandwidth", 0.0);
        const auto runs = entry.value("runs", Json::array());
        one.runs = runs.is_array() ? runs.size() : 0;
        const auto phases = entry.value("phases", Json::array());
        for (const auto& phase : phases.is_array() ? phases : Json::array()) {
            if (phase.is_object()) {
                one.phases.push_back({text(phase, "name"), Seconds{number(phase, "seconds", 0.0)}});
            }
        }
        return one;
    }

    const Json& json_;
    std::string file_;
    Faults faults_;
};

/// The prediction to lay beside a measured time: the simulation's where there is one.
struct Predicted {
    Seconds seconds;
    Seconds low;
    Seconds high;
};

std::optional<Predicted> predicted(const Report& report, Method method) {
    const auto* found = report.find(method);
    if (found == nullptr || !found->refused.empty()) {
        return std::nullopt;
    }
    const auto seconds = found->simulated ? found->simulated->seconds : found->seconds;
    return Predicted{seconds,
                     taken_along(found->low, found->seconds, seconds),
                     taken_along(found->high, found->seconds, seconds)};
}

std::string ratio_of(const MeasuredRefit& one, const std::optional<Predicted>& beside) {
    if (!beside || !(beside->seconds > Seconds{})) {
        return "-";
    }
    char text[32];
    std::snprintf(text, sizeof(text), "%.3g", one.seconds / beside->seconds);
    return text;
}

/// ", of 22 ms that were predicted for it" or nothing.
std::string machine_text(const MeasuredRefit& one) {
    return one.machine_predicted ? ", " + format_seconds(*one.machine_predicted) + " predicted for it"
                                 : std::string{};
}

std::string range_of(Seconds low, Seconds high) {
    return format_seconds(low) + " to " + format_seconds(high);
}

}  // namespace

Result<std::vector<MeasuredRefit>> read_measured(const std::vector<std::string>& files) {
    std::vector<MeasuredRefit> all;
    Faults faults;
    for (const auto& file : files) {
        const auto json = io::read_json(file);
        if (!json) {
            faults.insert(faults.end(), json.error().begin(), json.error().end());
            continue;
        }
        auto read = take(ReportReader{*json, file}.run(), faults);
        if (read) {
            all.insert(all.end(), read->begin(), read->end());
        }
    }
    return faults.empty() ? Result<std::vector<MeasuredRefit>>{std::move(all)} : fail(std::move(faults));
}

std::string measured_table(const Report& report,
                           const std::vector<MeasuredRefit>& measured,
                           const std::string& scenario,
                           bool is_markdown) {
    std::string text = scenario + ": what was predicted and what was measured\n\n";
    const auto row = [&](const std::vector<std::string>& cells) {
        constexpr std::size_t kWidths[] = {17, 11, 22, 11, 22, 9};
        for (std::size_t i = 0; i < cells.size(); ++i) {
            text += is_markdown ? "| " + cells[i] + " " : left(cells[i], kWidths[i]);
        }
        text += is_markdown ? "|\n" : "\n";
    };
    row({"method", "predicted", "range", "measured", "range", "measured/predicted"});
    text += is_markdown ? "|---|---|---|---|---|---|\n" : "";
    for (std::size_t i = 0; i < measured.size() && i < kMostRows; ++i) {
        const auto& one = measured[i];
        const auto beside = predicted(report, one.method);
        row({std::string{name_of(one.method)},
             beside ? format_seconds(beside->seconds) : "refused",
             beside ? range_of(beside->low, beside->high) : "",
             format_seconds(one.seconds),
             range_of(one.low, one.high),
             ratio_of(one, beside)});
    }
    if (measured.size() > kMostRows) {
        text += "and " + std::to_string(measured.size() - kMostRows) + " more (-o json has all)\n";
    }
    for (std::size_t i = 0; i < measured.size() && i < 4; ++i) {
        const auto& one = measured[i];
        text += "\n" + std::string{name_of(one.method)} + ": " + std::to_string(one.runs) + " runs by " +
                one.transport + " on " + one.machine.substr(0, 40) + machine_text(one) + "\n  " +
                format_bytes(one.delivered) + " delivered, " + std::to_string(one.elements) +
                " elements verified";
        text += one.bus_bandwidth > 0
                    ? ", " + format_bandwidth(Bandwidth::bytes_per_second(one.bus_bandwidth)) +
                          " at the busiest rank\n"
                    : "\n";
    }
    return text;
}

std::string measured_json(const Report& report,
                          const std::vector<MeasuredRefit>& measured,
                          const std::string& scenario) {
    Json rows = Json::array();
    for (const auto& one : measured) {
        const auto beside = predicted(report, one.method);
        Json phases = Json::array();
        for (const auto& phase : one.phases) {
            phases.push_back({{"name", phase.name}, {"seconds", phase.seconds.value()}});
        }
        rows.push_back({{"method", name_of(one.method)},
                        {"file", one.file},
                        {"transport", one.transport},
                        {"machine", one.machine},
                        {"predicted_seconds", beside ? Json(beside->seconds.value()) : Json(nullptr)},
                        {"predicted_low", beside ? Json(beside->low.value()) : Json(nullptr)},
                        {"predicted_high", beside ? Json(beside->high.value()) : Json(nullptr)},
                        {"measured_seconds", one.seconds.value()},
                        {"measured_low", one.low.value()},
                        {"measured_high", one.high.value()},
                        {"machine_predicted_seconds",
                         one.machine_predicted ? Json(one.machine_predicted->value()) : Json(nullptr)},
                        {"runs", one.runs},
                        {"elements", one.elements},
                        {"phases", phases}});
    }
    return Json{{"schema", "refit.measured_comparison"},
                {"schema_version", "1.0"},
                {"scenario", scenario},
                {"rows", rows}}
               .dump(1) +
           "\n";
}

std::string measured_csv(const Report& report, const std::vector<MeasuredRefit>& measured) {
    std::string text =
        "method,transport,predicted_seconds,measured_seconds,measured_low,measured_high,runs,elements\n";
    for (const auto& one : measured) {
        const auto beside = predicted(report, one.method);
        char line[256];
        std::snprintf(line,
                      sizeof(line),
                      "%s,%s,%s,%.9g,%.9g,%.9g,%zu,%llu\n",
                      std::string{name_of(one.method)}.c_str(),
                      one.transport.c_str(),
                      beside ? Json(beside->seconds.value()).dump().c_str() : "",
                      one.seconds.value(),
                      one.low.value(),
                      one.high.value(),
                      one.runs,
                      static_cast<unsigned long long>(one.elements));
        text += line;
    }
    return text;
}

}  // namespace refit::cli
