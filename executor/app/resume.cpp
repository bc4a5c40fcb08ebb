// SPDX-License-Identifier: Apache-2.0
#include "resume.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "refit/io/library.hpp"
#include "refit/losses.hpp"
#include "refit/methods.hpp"
#include "refit/shell_word.hpp"

namespace refit::exec {
namespace {

constexpr const char* kFlag = "--resume-without";

Fault refused(const char* rule, std::string message) {
    return {ErrorCode::kInvalidInput, rule, std::move(message), kFlag};
}

io::ScenarioDraft draft_of(const io::PlanFile& file) {
    using Kind = io::DraftField::Kind;
    io::ScenarioDraft draft;
    draft.set("name", {file.name, Kind::kText, io::Precedence::kFile, "the plan"});
    for (const auto& [field, text] : file.scenario) {
        draft.set(field, {text, Kind::kText, io::Precedence::kFile, "the plan's scenario"});
    }
    for (const auto& [field, text] : file.changes) {
        draft.set(field, {text, Kind::kText, io::Precedence::kFlag, "the plan's changes"});
    }
    return draft;
}

/// What a scenario's field offers, as the option that was given.
Faults as_option(Faults faults) {
    for (auto& fault : faults) {
        if (fault.nearest && fault.nearest->field == "lost") {
            fault.where = kFlag;
        }
    }
    return faults;
}

}  // namespace

Result<io::PlanFile> planned_without(const io::PlanFile& file, const std::string& ranks) {
    const auto named = parse_ranks(ranks, file.train_gpus, file.gpus() - file.train_gpus);
    if (!named) {
        return Failure{as_option(named.error())};
    }
    if (file.scenario.empty() && file.changes.empty()) {
        return fail(Faults{refused(
            "no-scenario",
            "the plan carries no scenario to plan again for those who are left; make it anew: refit plan "
            "SCENARIO --method " +
                std::string{name_of(file.plan.method)} + " --without " + ranks + " -O FILE")});
    }
    auto library = io::Library::open(io::data_folder(REFIT_SOURCE_DATA_DIR));
    if (!library) {
        return Failure{library.error()};
    }
    auto draft = draft_of(file);
    const auto before = io::resolve(draft, *library);
    if (!before) {
        return Failure{before.error()};
    }
    if (!io::is_same_job(file, *before, Workload::make(*before))) {
        return fail(Faults{refused(
            "plan-scenario",
            "the plan's scenario '" + file.name +
                "' moves other weights now, or to other ranks, than when the plan was made; make it anew")});
    }
    std::vector<std::uint32_t> lost;
    std::ranges::set_union(file.workload.losses().lost, *named, std::back_inserter(lost));
    draft.set("lost", {ranks_text(lost), io::DraftField::Kind::kText, io::Precedence::kFlag, kFlag});
    const auto scenario = io::resolve(draft, *library);
    if (!scenario) {
        return Failure{as_option(scenario.error())};
    }
    auto workload = Workload::make(*scenario);
    auto plan = make_plan(file.plan.method, *scenario, workload);
    if (!plan) {
        return Failure{plan.error()};
    }
    auto changes = file.changes;
    changes["lost"] = ranks_text(lost);
    return io::PlanFile{file.name,
                        std::move(workload),
                        std::move(*plan),
                        file.train_gpus,
                        file.domain_starts,
                        file.scenario,
                        std::move(changes)};
}

std::string resume_command(const Options& options, const std::string& ranks, std::size_t processes) {
    std::string command = processes == 0 ? "" : "mpirun -np " + std::to_string(processes) + " ";
    command += program_name();
    for (std::size_t i = 0; i < options.words.size(); ++i) {
        const auto& word = options.words[i];
        const bool is_dropped = word == "--inject" || word == kFlag;
        // The lost are not there to begin with.
        if (!is_dropped && word != "--shrink" && !word.starts_with("--inject=") &&
            !word.starts_with(std::string{kFlag} + "=")) {
            command += " " + shell_word(word);
        }
        i += is_dropped ? 1 : 0;
    }
    return command + " " + kFlag + " " + ranks;
}

}  // namespace refit::exec
