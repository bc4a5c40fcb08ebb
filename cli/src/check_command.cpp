// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "faults_text.hpp"
#include "refit/io/faults_json.hpp"
#include "refit/m2n_limits.hpp"
#include "refit/memory_advice.hpp"
#include "refit/methods.hpp"
#include "rows_text.hpp"
#include "session.hpp"

namespace refit::cli {
namespace {

using Json = nlohmann::json;

/// What one method says of a scenario that is sound in itself.
struct MethodCheck {
    Method method;
    Faults refused;
    Faults warnings;  ///< Where it is not refused.
};

std::vector<MethodCheck> check_methods(const Scenario& scenario, const std::vector<Method>& methods) {
    const auto workload = Workload::make(scenario);
    std::vector<MethodCheck> checks;
    for (const auto method : methods) {
        auto plan = make_plan(method, scenario, workload);
        checks.push_back({method,
                          plan ? Faults{} : std::move(plan.error()),
                          plan ? memory_warnings(*plan, scenario, workload) : Faults{}});
    }
    return checks;
}

std::string check_json(const Faults& faults,
                       const std::vector<MethodCheck>& checks,
                       const std::string& name) {
    Json methods = Json::array();
    for (const auto& check : checks) {
        methods.push_back({{"method", name_of(check.method)},
                           {"runs", check.refused.empty()},
                           {"refused", io::to_json(check.refused)},
                           {"warnings", io::to_json(check.warnings)}});
    }
    return Json{{"schema", "refit.check"},
                {"schema_version", "1.0"},
                {"scenario", name},
                {"runs", faults.empty()},
                {"faults", io::to_json(faults)},
                {"methods", methods}}
               .dump(1) +
           "\n";
}

/// One line a fault; none where all of it can run.
std::string check_rows(const Faults& faults, Format format) {
    std::vector<Row> rows;
    for (const auto& fault : faults) {
        const auto& nearest = fault.nearest;
        rows.push_back({fault.rule,
                        fault.message,
                        fault.where,
                        nearest ? nearest->field : "",
                        nearest ? nearest->value : ""});
    }
    return rows_text(format, {"rule", "message", "where", "nearest_field", "nearest_value"}, rows);
}

std::string names_of(const std::vector<MethodCheck>& checks) {
    std::string names;
    for (const auto& check : checks) {
        names += (names.empty() ? "" : ", ") + std::string{name_of(check.method)};
    }
    return names;
}

/// The rule sets that the methods keep.
std::string rules_of(const std::vector<MethodCheck>& checks, const Scenario& scenario) {
    const auto is_m2n = [](const MethodCheck& check) { return check.method == Method::kM2n; };
    const auto others = std::ranges::all_of(checks, is_m2n) ? std::string{} : scenario.rules.name();
    return std::ranges::none_of(checks, is_m2n) ? others : others + (others.empty() ? "" : ", ") + std::string{kM2nRules};
}

/// The faults of all methods, each fault once.
Faults faults_of(const std::vector<MethodCheck>& checks) {
    Faults faults;
    for (const auto& check : checks) {
        faults.insert(faults.end(), check.refused.begin(), check.refused.end());
    }
    return faults;
}

/// What the methods that run may come to grief on.
Faults warnings_of(const std::vector<MethodCheck>& checks) {
    Faults warnings;
    for (const auto& check : checks) {
        for (auto warning : check.warnings) {
            warning.message.insert(0, std::string{name_of(check.method)} + ": ");
            warnings.push_back(std::move(warning));
        }
    }
    return warnings;
}

}  // namespace

int run_check(const Options& options, const io::Library& library) {
    Faults faults;
    std::vector<Method> methods;
    for (const auto& name : options.methods) {
        if (const auto method = take(parse_method(name), faults)) {
            methods.push_back(*method);
        }
    }
    if (options.methods.empty()) {
        methods = {Method::kGatherBroadcast, Method::kHybrid};
    }
    const auto draft = take(collect_draft(options, library, faults), faults);
    if (draft && draft->fields().empty() && faults.empty()) {
        return usage_error(which_refit(options));
    }
    const auto scenario = draft ? take(io::resolve(*draft, library), faults) : std::nullopt;
    std::vector<MethodCheck> checks;
    if (scenario && faults.empty()) {
        checks = check_methods(*scenario, methods);
        faults = faults_of(checks);
    }
    std::cerr << (options.format == Format::kJson ? std::string{} : describe_warnings(warnings_of(checks)));
    std::string text;
    if (options.format == Format::kCsv || options.format == Format::kMarkdown) {
        text = check_rows(faults, options.format);
    } else if (options.format == Format::kJson) {
        text = check_json(faults, checks, scenario ? scenario->name : options.scenario);
    } else if (faults.empty()) {
        text = scenario->name + " can run: " + names_of(checks) + " (" + rules_of(checks, *scenario) + ")\n";
    } else {
        text = refusal_text(faults, options, draft ? &*draft : nullptr, &library, false);
    }
    const auto status = write_output(text, options);
    return status != kOk || faults.empty() ? status : static_cast<int>(exit_code_of(faults));
}

}  // namespace refit::cli
