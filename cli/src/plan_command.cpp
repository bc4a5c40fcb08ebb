// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "plan_explain.hpp"
#include "plan_tensors.hpp"
#include "plan_text.hpp"
#include "refit/compare.hpp"
#include "refit/io/json_file.hpp"
#include "refit/io/plan_file.hpp"
#include "refit/io/report_json.hpp"
#include "refit/methods.hpp"
#include "session.hpp"

namespace refit::cli {
namespace {

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
    request.published = *published;
    auto report = io::to_json(report_on(shown.plan, scenario, shown.workload, request), scenario);
    add_plan_json(report, shown);
    return report.dump(1) + "\n";
}

/// The fields that make the scenario again: those of its file, or those that were changed beside it.
std::map<std::string, std::string> texts_of(const io::ScenarioDraft& draft, bool are_changes) {
    std::map<std::string, std::string> texts;
    for (const auto& [name, field] : draft.fields()) {
        const bool is_change = field.precedence > io::Precedence::kFile;
        const bool is_said = name != "name" && name != "note" && name != "published" && !name.starts_with("schema");
        if (is_said && is_change == are_changes) {
            texts.emplace(name, field.text);
        }
    }
    return texts;
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
                                io::domain_starts(scenario.cluster), texts_of(draft, false), texts_of(draft, true)};
        const auto write = [&](std::ostream& stream) {
            io::write_plan(file, *encoding, stream);
            return true;
        };
        if (const auto written = io::write_whole(options.output, write); !written) {
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
        return usage_error(which_refit(options) + "\nOr give explicit tensors (--tensors FILE).");
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
        return options.format == Format::kCsv ? usage_error("plan --tensors prints a table or json (-o)")
                                              : plan_tensors(options, library);
    }
    return plan_scenario(options, library);
}

}  // namespace refit::cli
