// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "membership_text.hpp"
#include "progress.hpp"
#include "refit/compare.hpp"
#include "session.hpp"

namespace refit::cli {
namespace {

std::vector<GpuRun> gpu_runs(const std::vector<std::string>& texts,
                             const char* flag,
                             std::uint32_t gpus_per_node,
                             Faults& faults) {
    std::vector<GpuRun> runs;
    for (const auto& text : texts) {
        auto read = parse_gpu_run(text, gpus_per_node);
        if (read) {
            runs.push_back(*read);
            continue;
        }
        for (auto& fault : read.error()) {
            fault.where = flag;
            faults.push_back(std::move(fault));
        }
    }
    return runs;
}

std::vector<Method> asked_methods(const Options& options, Faults& faults) {
    if (options.methods.empty()) {
        return CompareRequest{}.methods;
    }
    std::vector<Method> methods;
    for (const auto& name : options.methods) {
        const auto method = take(parse_method(name), faults);
        if (method && std::ranges::find(methods, *method) == methods.end()) {
            methods.push_back(*method);
        }
    }
    return methods;
}

/// The scenario with the generators that are left and come.
Result<Scenario> changed_scenario(io::ScenarioDraft draft,
                                  const GenerateLayout& layout,
                                  const io::Library& library) {
    const auto set = [&](const char* field, const std::string& value) {
        draft.set(field, {value, io::DraftField::Kind::kText, io::Precedence::kFlag, "--lose, --gain"});
    };
    set("generate.gpus", std::to_string(layout.gpus));
    set("generate.layout", to_text(layout));
    auto scenario = io::resolve(draft, library);
    if (scenario) {
        return scenario;
    }
    auto faults = scenario.error();
    for (auto& fault : faults) {
        fault.message.insert(0, "after the change: ");
        fault.nearest.reset();
    }
    return fail(std::move(faults));
}

Report compared(const Scenario& scenario, const std::vector<Method>& methods, const Options& options) {
    CompareRequest request;
    request.methods = methods;
    request.steps.clear();
    Progress progress{options.shows_progress};
    request.progress = [&](std::string_view what, double done) { progress.tell(what, done); };
    return compare(scenario, request);
}

std::vector<MembershipMethod> method_costs(const Scenario& before,
                                           const Scenario& after,
                                           const std::vector<Method>& methods,
                                           const MembershipChange& change,
                                           const MembershipConstants& constants,
                                           const Options& options) {
    const auto old_report = compared(before, methods, options);
    const auto new_report = compared(after, methods, options);
    std::vector<MembershipMethod> entries;
    for (const auto method : methods) {
        MembershipMethod entry{*old_report.find(method), *new_report.find(method), 0, {}};
        const auto old_groups = communicators_of(method, before);
        const auto new_groups = communicators_of(method, after);
        entry.communicators = count_of(new_groups);
        for (const auto way : {MembershipWay::kRebuild, MembershipWay::kShrinkAndGrow}) {
            entry.costs[static_cast<std::size_t>(way)] =
                membership_cost(way, change, old_groups, new_groups, constants);
        }
        entries.push_back(std::move(entry));
    }
    return entries;
}

}  // namespace

int run_membership(const Options& options, const io::Library& library) {
    if (options.lost.empty() && options.gained.empty()) {
        return usage_error("membership takes --lose, --gain or both, for example --lose 1node --gain 2node");
    }
    Faults faults;
    const auto methods = asked_methods(options, faults);
    const auto draft = take(collect_draft(options, library, faults), faults);
    if (draft && draft->fields().empty() && faults.empty()) {
        return usage_error(which_refit(options));
    }
    if (draft && draft->find("lost") != nullptr) {
        return usage_error("membership takes who is lost as --lose, not as --without or the field lost");
    }
    const auto scenario = draft ? take(io::resolve(*draft, library), faults) : std::nullopt;
    const auto gpus_per_node = scenario ? scenario->cluster.generate_system().gpus_per_node : 1;
    MembershipAnswer answer;
    answer.lost = gpu_runs(options.lost, "--lose", gpus_per_node, faults);
    answer.gained = gpu_runs(options.gained, "--gain", gpus_per_node, faults);
    const auto constants = take(library.membership(), faults);
    std::optional<Scenario> after;
    if (scenario) {
        if (const auto change =
                take(change_members(scenario->generate, answer.lost, answer.gained, gpus_per_node), faults)) {
            answer.change = *change;
            after = take(changed_scenario(*draft, change->after, library), faults);
        }
    }
    if (!faults.empty()) {
        return refuse(faults, options, draft ? &*draft : nullptr, &library);
    }
    answer.scenario = scenario->name;
    answer.layout = scenario->generate;
    answer.train_gpus = scenario->train.gpus;
    answer.gpus_least = constants->gpus_least;
    answer.gpus_most = constants->gpus_most;
    answer.methods = method_costs(*scenario, *after, methods, answer.change, *constants, options);
    const auto status = write_output(membership_text(answer, options.format), options);
    const bool is_answered = std::ranges::any_of(
        answer.methods, [](const MembershipMethod& method) { return method.refused().empty(); });
    return status != kOk ? status : is_answered ? kOk : kInfeasible;
}

}  // namespace refit::cli
