// SPDX-License-Identifier: Apache-2.0
#include "refit/gui/open.hpp"

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "refit/io/json_file.hpp"
#include "refit/io/plan_file.hpp"
#include "refit/quantity.hpp"

namespace refit::gui {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::optional<Seconds> time_of(const Json& entry, const char* key) {
    const auto found = entry.find(key);
    if (found == entry.end() || !found->is_number() || !(found->get<double>() > 0.0) || found->get<double>() > 1e9) {
        return std::nullopt;
    }
    return Seconds{found->get<double>()};
}

/// The fields of a resolved scenario that a draft knows; what was derived from them is left out.
void flatten(const Json& json, const std::string& name, const std::string& origin, io::ScenarioDraft& draft) {
    if (json.is_object()) {
        for (const auto& [key, value] : json.items()) {
            flatten(value, name.empty() ? key : name + "." + key, origin, draft);
        }
    } else if ((json.is_string() || json.is_number() || json.is_boolean()) && !io::check_field_name(name)) {
        draft.set(name, {json.is_string() ? json.get<std::string>() : json.dump(), io::DraftField::Kind::kText, io::Precedence::kFile, origin + ": /scenario"});
    }
}

/// Times of a report that were measured; others are computed anew, so that they fit what is shown.
Result<Opened> open_report(const Json& json, const std::string& file, const Question& current) {
    Opened opened{current, {}, "report"};
    Faults faults;
    const auto methods = json.value("methods", Json::array());
    if (!methods.is_array()) {
        return fail(ErrorCode::kInvalidInput, "measured-report", "the methods of a report must be a list", file + ": /methods");
    }
    for (std::size_t i = 0; i < methods.size(); ++i) {
        const auto& entry = methods[i];
        const auto where = file + ": /methods/" + std::to_string(i);
        const auto named = entry.is_object() ? entry.value("method", Json{}) : Json{};
        const auto method = take(parse_method(named.is_string() ? named.get<std::string>() : std::string{}), faults);
        if (!method) {
            faults.back().where = where + "/method";
            continue;
        }
        if (entry.value("kind", Json{}) != "measured") {
            continue;
        }
        const auto seconds = time_of(entry, "seconds");
        if (!seconds) {
            faults.push_back({ErrorCode::kInvalidInput, "measured-report", "a measured time must be a number of seconds above 0", where + "/seconds"});
            continue;
        }
        opened.measured[*method] = {*seconds, time_of(entry, "seconds_low"), time_of(entry, "seconds_high"), file};
        opened.what = "measurement";
    }
    if (json.contains("scenario") && json["scenario"].is_object()) {
        io::ScenarioDraft draft;
        flatten(json["scenario"], "", file, draft);
        opened.question.draft = std::move(draft);
        opened.question.origin.clear();
        opened.question.plan = nullptr;
    }
    if (!faults.empty()) {
        return fail(std::move(faults));
    }
    return opened;
}

/// The scenario that a plan file carries, with its changes as flags.
io::ScenarioDraft carried_draft(const io::PlanFile& plan, const std::string& origin) {
    io::ScenarioDraft draft;
    for (const auto& [name, text] : plan.scenario) {
        draft.set(name, {text, io::DraftField::Kind::kText, io::Precedence::kFile, origin + ": /scenario"});
    }
    for (const auto& [name, text] : plan.changes) {
        draft.set(name, {text, io::DraftField::Kind::kText, io::Precedence::kFlag, origin + ": /changes"});
    }
    return draft;
}

/// A plan tells who sends what; the rates come from the scenario that it carries, or names.
Result<Opened> open_plan(Result<io::PlanFile> plan, const std::string& file, const Question& current, const io::Library& library) {
    if (!plan) {
        return fail(std::move(plan.error()));
    }
    Opened opened{current, {}, "plan"};
    const auto* name = current.draft.find("name");
    if (!plan->scenario.empty()) {
        opened.question.draft = carried_draft(*plan, file);
        opened.question.origin.clear();
        // One that is shipped has a name that commands take, and published times.
        if (const auto shipped = library.scenario(plan->name)) {
            for (const auto* field : {"name", "published"}) {
                if (const auto* known = shipped->find(field)) {
                    opened.question.draft.set(field, *known);
                }
            }
            opened.question.origin = plan->name;
        }
    } else if (!plan->name.empty() && (name == nullptr || name->text != plan->name)) {
        auto draft = library.scenario(plan->name);
        if (!draft) {
            for (auto& fault : draft.error()) {
                fault.message += "; a plan file has neither rates nor software costs: open its scenario first, then the plan";
            }
            return fail(std::move(draft.error()));
        }
        opened.question.draft = std::move(*draft);
        opened.question.origin = plan->name;
    }
    const auto scenario = io::resolve(opened.question.draft, library);
    if (!scenario) {
        return fail(scenario.error());
    }
    const auto workload = Workload::make(*scenario);
    const auto& moved = plan->workload;
    if (plan->train_gpus != scenario->cluster.train_gpus() || plan->gpus() != scenario->cluster.gpus() ||
        !std::ranges::equal(moved.generator_bytes(), workload.generator_bytes()) || io::domain_starts(scenario->cluster) != plan->domain_starts ||
        moved.classes().size() != workload.classes().size()) {
        return fail(ErrorCode::kInvalidInput, "plan-scenario",
                    "the plan moves other weights, or to other ranks or domains, than the scenario '" + scenario->name + "'; open the one it was made for first", file);
    }
    opened.question.method = plan->plan.method;
    opened.question.plan = std::make_shared<const Plan>(std::move(plan->plan));
    return opened;
}

Result<Opened> open_scenario(const std::string& target, const Question& current, const io::Library& library) {
    auto draft = library.scenario(target);
    if (!draft) {
        return fail(std::move(draft.error()));
    }
    Opened opened{current, {}, target.ends_with(".yaml") || target.ends_with(".yml") ? "recipe" : "scenario"};
    opened.question.draft = std::move(*draft);
    opened.question.origin = target;
    opened.question.plan = nullptr;
    if (opened.what == "recipe" && opened.question.draft.find("system") == nullptr && opened.question.draft.find("system.train") == nullptr) {
        // A recipe names no machines: those on screen go on.
        for (const auto* field : {"system", "system.train", "system.generate"}) {
            if (const auto* known = current.draft.find(field)) {
                set_field(opened.question.draft, field, known->text);
            }
        }
    }
    return opened;
}

Opened open_model(const std::string& target, const Question& current) {
    Opened opened{current, {}, "model"};
    set_field(opened.question.draft, "model", target);
    opened.question.draft.erase("published");
    opened.question.plan = nullptr;
    return opened;
}

std::string trimmed(double value) {
    char buffer[48];
    std::snprintf(buffer, sizeof buffer, "%.6g", value);
    return buffer;
}

}  // namespace

Result<Opened> open_any(const std::string& target, const Question& current, const io::Library& library) {
    std::error_code error;
    const fs::path path{target};
    if (fs::is_directory(path, error) || path.filename() == "config.json") {
        return open_model(target, current);
    }
    if (!fs::exists(path, error) || target.ends_with(".yaml") || target.ends_with(".yml")) {
        return open_scenario(target, current, library);
    }
    if (fs::is_block_file(path, error) || fs::is_character_file(path, error)) {
        return fail(ErrorCode::kIo, "unreadable", "this is a device, not a file", target);
    }
    const auto text = io::read_text(path, 1U << 30U);
    if (!text) {
        return fail(text.error());
    }
    if (target.ends_with(".cbor")) {
        return open_plan(io::read_plan(*text, target), target, current, library);
    }
    auto json = io::parse_json(*text, target);
    if (!json) {
        return fail(json.error());
    }
    const auto schema = json->is_object() ? json->value("schema", Json{}) : Json{};
    if (schema == "refit.plan") {
        return open_plan(io::plan_from_json(std::move(*json), target), target, current, library);
    }
    if (schema == "refit.report") {
        return open_report(*json, target, current);
    }
    return open_scenario(target, current, library);
}

const std::vector<EditField>& edit_fields() {
    static const std::vector<EditField> kFields{
        {"model", "Model", "deepseek-v3"},
        {"train.gpus", "Training GPUs", "256"},
        {"train.layout", "Training layout", "tp2.pp16.ep16 or fsdp16"},
        {"generate.gpus", "Generation GPUs", "256"},
        {"generate.layout", "Generation layout", "tp32.dp8"},
        {"system", "System", "h100-nvl8"},
        {"system.nic", "NIC rate", "400Gbit/s or 50GB/s"},
        {"system.nvlink", "NVLink rate of a GPU", "450GB/s"},
        {"engine.coverage", "Bulk path takes", "nemo-rl-names, ffn or all"},
        {"engine.options.NRL_REFIT_NUM_STREAMS", "Stages in flight", "2"},
        {"engine.options.NRL_REFIT_NUM_BUFFERS", "Packs in flight", "2"},
        {"fabric.oversubscription", "Oversubscription", "2:1"},
        {"fabric.domains_per_pod", "Domains in a pod", "8"}};
    return kFields;
}

std::string value_of(const Answer& answer, const std::string& field) {
    if (const auto* set = answer.question.draft.find(field)) {
        return set->text;
    }
    const auto& scenario = answer.scenario;
    const auto& options = scenario.engine.options;
    const auto& system = scenario.cluster.train_system();
    if (field == "system.nic") {
        return trimmed(system.nic.value.bytes_per_second() * 8e-9) + "Gbit/s";
    }
    if (field == "system.nvlink") {
        return trimmed(system.nvlink.value.bytes_per_second() * 1e-9) + "GB/s";
    }
    if (field == "engine.options.NRL_REFIT_NUM_STREAMS") {
        return std::to_string(options.streams);
    }
    if (field == "engine.options.NRL_REFIT_NUM_BUFFERS") {
        return std::to_string(options.buffers);
    }
    if (field == "train.gpus") {
        return std::to_string(scenario.train.gpus);
    }
    if (field == "generate.gpus") {
        return std::to_string(scenario.generate.gpus);
    }
    if (field == "train.layout") {
        return to_text(scenario.train);
    }
    if (field == "generate.layout") {
        return to_text(scenario.generate);
    }
    return field == "system" ? system.name : field == "model" ? scenario.model.id() : std::string{};
}

void set_field(io::ScenarioDraft& draft, const std::string& field, const std::string& value) {
    const auto* old = draft.find(field);
    if (old != nullptr && old->text == value) {
        return;
    }
    if (value.empty()) {
        // What the file says comes back, where it says anything.
        const auto original = old != nullptr && old->precedence > io::Precedence::kFile ? old->overridden : std::nullopt;
        draft.erase(field);
        if (original) {
            draft.set(field, {*original, io::DraftField::Kind::kText, io::Precedence::kFile, "the scenario"});
        }
        return;
    }
    if (old != nullptr && old->precedence > io::Precedence::kFile && old->overridden == value) {
        draft.erase(field);
        draft.set(field, {value, io::DraftField::Kind::kText, io::Precedence::kFile, "the scenario"});
        return;
    }
    draft.set(field, {value, io::DraftField::Kind::kText, io::Precedence::kFlag, "the window"});
}

Result<bool> apply_setting(io::ScenarioDraft& draft, const std::string& setting) {
    const auto equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
        return fail(ErrorCode::kUsage, "usage", "--set takes FIELD=VALUE, not '" + setting + "'", "--set");
    }
    if (auto fault = io::check_field_name(setting.substr(0, equals))) {
        return fail({std::move(*fault)});
    }
    set_field(draft, setting.substr(0, equals), setting.substr(equals + 1));
    return true;
}

std::string scenario_text(const io::ScenarioDraft& draft) { return io::to_json(draft).dump(1) + "\n"; }

std::string plan_text(const Answer& answer) {
    io::PlanFile file{answer.scenario.name, answer.workload, *answer.a.plan, answer.train_gpus(), io::domain_starts(answer.scenario.cluster)};
    for (const auto& [name, field] : answer.question.draft.fields()) {
        if (name != "name" && name != "note" && name != "published" && !name.starts_with("schema")) {
            (field.precedence > io::Precedence::kFile ? file.changes : file.scenario).emplace(name, field.text);
        }
    }
    return io::write_plan(file, io::PlanEncoding::kJson);
}

std::vector<std::string> lines_of(const Faults& faults) {
    std::vector<std::string> lines;
    for (const auto& fault : faults) {
        lines.push_back(fault.message + "  [" + fault.rule + "]");
        if (!fault.where.empty() && !fault.message.starts_with(fault.where)) {
            lines.push_back("where  " + fault.where);
        }
        if (fault.nearest) {
            lines.push_back("try  " + fault.nearest->field + " = " + fault.nearest->value);
        }
    }
    return lines;
}

}  // namespace refit::gui
