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
#include "refit/m2n_calls.hpp"
#include "refit/memory_advice.hpp"
#include "refit/methods.hpp"
#include "session.hpp"

namespace refit::cli {
namespace {

using Json = nlohmann::json;

/// What one method says of a scenario that is sound in itself.
struct MethodCheck {
    std::string method;
    Faults refused;
    Faults warnings;  ///< Where it is not refused.
};

/// NCCL M2N plans call by call rather than as one of the planner's methods, and has rules of its own.
constexpr const char* kM2n = "m2n";

std::vector<MethodCheck> check_methods(const Scenario& scenario, const std::vector<std::string>& methods) {
    const auto workload = Workload::make(scenario);
    std::vector<MethodCheck> checks;
    for (const auto& name : methods) {
        if (name == kM2n) {
            checks.push_back({name, m2n_scenario_faults(scenario, workload), {}});
            continue;
        }
        const auto method = parse_method(name).value();
        auto plan = make_plan(method, scenario, workload);
        checks.push_back({std::string{name_of(method)},
                          plan ? Faults{} : std::move(plan.error()),
                          plan ? memory_warnings(*plan, scenario, workload) : Faults{}});
    }
    return checks;
}

std::string check_json(const Faults& faults, const std::vector<MethodCheck>& checks, const std::string& name) {
    Json methods = Json::array();
    for (const auto& check : checks) {
        methods.push_back({{"method", check.method}, {"runs", check.refused.empty()}, {"refused", io::to_json(check.refused)}, {"warnings", io::to_json(check.warnings)}});
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

std::string names_of(const std::vector<MethodCheck>& checks) {
    std::string names;
    for (const auto& check : checks) {
        names += (names.empty() ? "" : ", ") + check.method;
    }
    return names;
}

/// The rule sets that the methods keep.
std::string rules_of(const std::vector<MethodCheck>& checks, const Scenario& scenario) {
    const auto is_m2n = [](const MethodCheck& check) { return check.method == kM2n; };
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
            warning.message.insert(0, check.method + ": ");
            warnings.push_back(std::move(warning));
        }
    }
    return warnings;
}

}  // namespace

int run_check(const Options& options, const io::Library& library) {
    Faults faults;
    for (const auto& name : options.methods) {
        if (name != kM2n) {
            static_cast<void>(take(parse_method(name), faults));
        }
    }
    auto methods = options.methods;
    if (methods.empty()) {
        methods = {std::string{name_of(Method::kGatherBroadcast)}, std::string{name_of(Method::kHybrid)}};
    }
    const auto draft = take(collect_draft(options, library, faults), faults);
    const auto scenario = draft ? take(io::resolve(*draft, library), faults) : std::nullopt;
    std::vector<MethodCheck> checks;
    if (scenario && faults.empty()) {
        checks = check_methods(*scenario, methods);
        faults = faults_of(checks);
    }
    std::cerr << (options.format == Format::kJson ? std::string{} : describe_warnings(warnings_of(checks)));
    std::string text;
    if (options.format == Format::kJson) {
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
