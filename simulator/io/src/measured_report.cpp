// SPDX-License-Identifier: Apache-2.0
#include "refit/io/measured_report.hpp"

#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "refit/io/json_file.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;

/// What the records call an engine's refit by a method of the reports.
std::optional<std::string> engine_of(const std::string& method) {
    if (method == "gather-broadcast") {
        return "nemo-rl-broadcast";
    }
    return method == "hybrid" ? std::optional<std::string>{"nemo-rl-reshard"} : std::nullopt;
}

/// The fields of a resolved scenario that a draft knows; what was derived from them is left out.
void flatten(const Json& json, const std::string& name, Precedence precedence, const std::string& origin, ScenarioDraft& draft) {
    if (json.is_object()) {
        for (const auto& [key, value] : json.items()) {
            flatten(value, name.empty() ? key : name + "." + key, precedence, origin, draft);
        }
        return;
    }
    // What was published of a scenario is no part of what was run.
    const bool is_scalar = json.is_string() || json.is_number() || json.is_boolean();
    if (is_scalar && name != "published" && !check_field_name(name)) {
        const auto text = json.is_string() ? json.get<std::string>() : json.dump();
        draft.set(name, {text, DraftField::Kind::kText, precedence, origin});
    }
}

ScenarioDraft draft_in(const Json& report, const std::string& origin) {
    ScenarioDraft draft;
    flatten(report.value("scenario", Json::object()), "", Precedence::kFile, origin + ": /scenario", draft);
    flatten(report.value("changes", Json::object()), "", Precedence::kFlag, origin + ": /changes", draft);
    return draft;
}

class ReportReader {
public:
    ReportReader(const Json& json, const std::filesystem::path& file, const Library& library)
        : json_{json}, origin_{file.string()}, stem_{file.stem().string()}, library_{library} {}

    Result<std::vector<ValidationCase>> run() {
        if (!json_.is_object() || json_.value("schema", Json{}) != "refit.report" ||
            !json_.contains("methods") || !json_["methods"].is_array()) {
            return fail(ErrorCode::kInvalidInput,
                        "schema",
                        "is no report: \"schema\" must be \"refit.report\", with a list \"methods\"",
                        origin_);
        }
        const auto& methods = json_["methods"];
        for (std::size_t at = 0; at < methods.size(); ++at) {
            const auto& entry = methods[at];
            if (entry.is_object() && entry.value("kind", Json{}) == "measured") {
                read(entry, "/methods/" + std::to_string(at));
            }
        }
        if (faults_.empty() && cases_.empty()) {
            refuse("/methods", "no entry is of kind \"measured\"");
        }
        if (faults_.empty()) {
            add_scenario();
        }
        return faults_.empty() ? Result<std::vector<ValidationCase>>{std::move(cases_)}
                               : fail(std::move(faults_));
    }

private:
    void refuse(const std::string& path, const std::string& message) {
        faults_.push_back({ErrorCode::kInvalidInput, "measured-report", message, origin_ + ": " + path});
    }

    std::optional<Seconds> time(const Json& entry, const char* key, const std::string& path) {
        const auto found = entry.find(key);
        if (found == entry.end() || found->is_null()) {
            return std::nullopt;
        }
        if (!found->is_number() || !(found->get<double>() > 0.0) || found->get<double>() > 1e9) {
            refuse(path + "/" + key, found->dump() + " is no time in seconds above 0");
            return std::nullopt;
        }
        return Seconds{found->get<double>()};
    }

    void read(const Json& entry, const std::string& path) {
        const auto named = entry.value("method", Json{});
        const auto method = named.is_string() ? named.get<std::string>() : std::string{};
        const auto engine = engine_of(method);
        if (!engine) {
            refuse(
                path + "/method",
                "'" + method + "' is not among what an engine is fitted to; gather-broadcast and hybrid are");
            return;
        }
        ValidationCase one;
        one.record.id = stem_ + "#" + method;
        one.record.source = origin_;
        one.record.engine = *engine;
        one.record.tier = "A";
        one.record.served_to_fit = true;
        one.record.seconds = time(entry, "seconds", path);
        one.record.low = time(entry, "seconds_low", path);
        one.record.high = time(entry, "seconds_high", path);
        if (!one.record.seconds && faults_.empty()) {
            refuse(path + "/seconds", "is missing");
        }
        if (one.record.low && one.record.high && *one.record.low > *one.record.high) {
            refuse(path + "/seconds_low", "is above seconds_high");
        }
        cases_.push_back(std::move(one));
    }

    void add_scenario() {
        const auto draft = draft_in(json_, origin_);
        auto scenario = resolve(draft, library_);
        if (!scenario) {
            faults_ = std::move(scenario.error());
            return;
        }
        for (auto& one : cases_) {
            one.record.model = scenario->model.id();
            one.scenario = *scenario;
        }
    }

    const Json& json_;
    std::string origin_;
    std::string stem_;
    const Library& library_;
    std::vector<ValidationCase> cases_;
    Faults faults_;
};

}  // namespace

Result<ScenarioDraft> read_measured_scenario(const std::filesystem::path& file) {
    const auto json = read_json(file);
    if (!json) {
        return Failure{json.error()};
    }
    return json->is_object() ? draft_in(*json, file.string()) : ScenarioDraft{};
}

Result<std::vector<ValidationCase>> read_measured_report(const std::filesystem::path& file,
                                                         const Library& library) {
    const auto json = read_json(file);
    if (!json) {
        return Failure{json.error()};
    }
    return ReportReader{*json, file, library}.run();
}

}  // namespace refit::io
