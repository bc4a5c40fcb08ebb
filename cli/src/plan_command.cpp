// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "m2n_text.hpp"
#include "plan_explain.hpp"
#include "plan_text.hpp"
#include "refit/compare.hpp"
#include "refit/io/json_file.hpp"
#include "refit/io/m2n_json.hpp"
#include "refit/io/plan_file.hpp"
#include "refit/io/report_json.hpp"
#include "refit/methods.hpp"
#include "refit/suggest.hpp"
#include "session.hpp"

namespace refit::cli {
namespace {

std::string m2n_json(const std::vector<io::M2nAnswer>& answers, bool is_list) {
    if (!is_list) {
        return io::to_json(answers.front()).dump() + "\n";
    }
    auto list = nlohmann::ordered_json::array();
    for (const auto& answer : answers) {
        list.push_back(io::to_json(answer));
    }
    return list.dump() + "\n";
}

/// A file with refused calls is answered all the same; the code tells where nothing else is in it.
int plan_m2n(const Options& options, const nlohmann::json& tensors) {
    const auto requests = io::read_m2n_requests(tensors, options.tensors);
    if (!requests) {
        return refuse(requests.error(), options);
    }
    const auto answers = io::answer(*requests);
    const auto text =
        options.format == Format::kJson ? m2n_json(answers, requests->is_list) : m2n_text(answers);
    const auto status = write_output(text, options);
    const bool is_all_refused =
        std::ranges::none_of(answers, [](const auto& entry) { return entry.plan.has_value(); });
    return status == kOk && is_all_refused ? static_cast<int>(kInfeasible) : status;
}

/// A method that plans explicit tensors.
struct TensorMethod {
    const char* name;
    int (*plan)(const Options& options, const nlohmann::json& tensors);
};

constexpr std::array kTensorMethods{TensorMethod{"m2n", plan_m2n}};

/// Plans the file that --tensors names, by the method asked for, else by the first.
int plan_tensors(const Options& options) {
    if (!options.fields.empty()) {
        return usage_error(options.field_flags.front() +
                           " is a field of a scenario, and --tensors takes none");
    }
    const auto method = options.methods.empty()
                            ? kTensorMethods.begin()
                            : std::ranges::find(kTensorMethods, options.methods.back(), &TensorMethod::name);
    if (method == kTensorMethods.end()) {
        std::vector<std::string> names;
        for (const auto& known : kTensorMethods) {
            names.emplace_back(known.name);
        }
        const auto& asked = options.methods.back();
        return refuse(Faults{{ErrorCode::kInvalidInput,
                              "unknown-method",
                              "method '" + asked + "' does not plan explicit tensors; the nearest is '" +
                                  nearest_name(asked, names) + "' (known: " + join_names(names) + ")",
                              "--method"}},
                      options);
    }
    const auto tensors = io::read_json(options.tensors);
    return tensors ? method->plan(options, *tensors) : refuse(tensors.error(), options);
}

/// Where the plan file goes, in which encoding; nothing where none was asked for.
std::optional<io::PlanEncoding> encoding_of(const std::string& output, Faults& faults) {
    if (output.empty()) {
        return std::nullopt;
    }
    if (output.ends_with(".json")) {
        return io::PlanEncoding::kJson;
    }
    if (!output.ends_with(".cbor")) {
        faults.push_back({ErrorCode::kInvalidInput,
                          "plan-name",
                          "the file's name must end in .json or .cbor, which tells how the plan is written",
                          "-O " + output});
    }
    return io::PlanEncoding::kCbor;
}

Result<std::string> rendered(const ShownPlan& shown, const Scenario& scenario, const Options& options, const io::Library& library) {
    if (!options.explain.empty()) {
        return explain_plan(shown, options.explain);
    }
    if (options.format == Format::kTable) {
        return plan_text(shown);
    }
    if (options.format == Format::kCsv) {
        return plan_csv(shown);
    }
    const auto published = library.published();
    if (!published) {
        return fail(Faults{published.error()});
    }
    CompareRequest request;
    request.methods = {shown.plan.method};
    request.published = *published;
    auto report = io::to_json(compare(scenario, request), scenario);
    add_plan_json(report, shown);
    return report.dump(1) + "\n";
}

/// Plans, writes the plan file where one is asked for, and shows the plan.
int answer(const Scenario& scenario, Method method, const std::optional<io::PlanEncoding>& encoding, const Options& options,
           const io::Library& library, const io::ScenarioDraft& draft) {
    auto workload = Workload::make(scenario);
    auto plan = make_plan(method, scenario, workload);
    if (!plan) {
        return refuse(plan.error(), options, &draft, &library);
    }
    const auto summary = summarise(*plan, workload, scenario.cluster);
    const auto certificate = certify(*plan, scenario, workload);
    const auto memory = account_memory(*plan, scenario, workload);
    const auto packs = pack_sizes(*plan, scenario, workload);
    const auto text = rendered({scenario.name, *plan, workload, scenario.cluster, summary, certificate, memory, packs}, scenario, options, library);
    if (!text) {
        return refuse(text.error(), options);
    }
    if (encoding) {
        const io::PlanFile file{scenario.name, std::move(workload), std::move(*plan), scenario.cluster.train_gpus(),
                                io::domain_starts(scenario.cluster)};
        if (const auto written = io::write_whole(options.output, io::write_plan(file, *encoding)); !written) {
            return refuse(written.error(), options);
        }
    }
    auto on_stdout = options;
    on_stdout.output.clear();
    return write_output(*text, on_stdout);
}

int plan_scenario(const Options& options, const io::Library& library) {
    Faults faults;
    auto method = Method::kOptimal;
    if (options.methods.size() > 1) {
        return usage_error("plan takes one --method");
    }
    for (const auto& name : options.methods) {
        auto asked = parse_method(name);
        if (!asked) {
            asked.error().front().where = "--method";
        }
        method = take(std::move(asked), faults).value_or(method);
    }
    const auto encoding = encoding_of(options.output, faults);
    const auto draft = take(collect_draft(options, library, faults), faults);
    if (draft && draft->fields().empty() && faults.empty()) {
        return usage_error("which refit? Name a scenario (for example deepseek-v3-h100), a scenario file or a NeMo RL\n"
                           "recipe; or give explicit tensors (--tensors FILE).");
    }
    const auto scenario = draft ? take(io::resolve(*draft, library), faults) : std::nullopt;
    if (!faults.empty()) {
        return refuse(faults, options, draft ? &*draft : nullptr, &library);
    }
    return answer(*scenario, method, encoding, options, library, *draft);
}

}  // namespace

int run_plan(const Options& options, const io::Library& library) {
    if (options.format == Format::kMarkdown) {
        return usage_error("plan prints a table, json or csv (-o)");
    }
    if (!options.tensors.empty()) {
        return options.format == Format::kCsv ? usage_error("plan --tensors prints a table or json (-o)") : plan_tensors(options);
    }
    return plan_scenario(options, library);
}

}  // namespace refit::cli
