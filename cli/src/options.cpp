// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <map>

#include <CLI/CLI.hpp>

#include "refit/io/field_options.hpp"
#include "refit/suggest.hpp"

namespace refit::cli {
namespace {

constexpr const char* kExamples = R"(
Examples:
  refit compare recipe.yaml --system h100-nvl8            a NeMo RL recipe as it is
  refit compare deepseek-v3-h100 --generate tp64.dp4      a shipped scenario, changed
  refit check my.json                                     all faults at once, each with a cure
  refit plan deepseek-v3-h100 -O plan.json                who sends which bytes to whom
  refit simulate deepseek-v3-h100 --trace out.json        its course in time, what waits for what

The environment may stand for a flag: REFIT_SYSTEM for --system; REFIT_DATA names another data folder.
Exit codes: 0 answered, 2 usage, 3 input not understood, 4 cannot run, 5 not supported, 6 file trouble.)";

const std::vector<std::string> kFormatNames{"table", "json", "csv", "md"};
const std::map<std::string, Format> kFormats{
    {"table", Format::kTable}, {"json", Format::kJson}, {"csv", Format::kCsv}, {"md", Format::kMarkdown}};

constexpr std::array kCommands{Command::kCompare, Command::kExplain, Command::kCheck, Command::kPlan, Command::kSimulate, Command::kShow,
                               Command::kValidate, Command::kFit, Command::kMembership};
constexpr const char* kOutputGroup = "What to show";

/// What CLI11 fills; turned into Options afterwards.
struct Raw {
    std::map<std::string, std::string> fields;
    std::vector<std::string> sets;
    std::vector<std::string> nics;
    std::string format = "table";
    std::string quotient = "on";
    bool no_color = false;
    bool no_progress = false;
};

void add_scenario_options(CLI::App& command, Raw& raw) {
    const char* group = "Scenario";
    for (const auto& option : io::field_options()) {
        command.add_option(option.flag, raw.fields[option.flag], option.help)
            ->group(group)
            ->type_name(option.placeholder)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
    command.add_option("--nic", raw.nics, "a GPU's NICs that are down or slow, for example trainer:17=down or 300=200Gbit/s")
        ->group(group)
        ->type_name("RANK=down|RATE")
        ->allow_extra_args(false);
    command.add_option("--set", raw.sets, "any scenario field; --print-config lists them")
        ->group(group)
        ->type_name("FIELD=VALUE")
        ->allow_extra_args(false);
}

void add_methods(CLI::App& command, Options& options) {
    command.add_option("--method", options.methods, "only these: gather-broadcast, hybrid (or reshard), direct, striped, m2n, optimal")
        ->type_name("NAME,...")
        ->allow_extra_args(false)
        ->delimiter(',')
        ->group(kOutputGroup);
}

void add_output_options(CLI::App& command, Options& options, Raw& raw) {
    command.add_option("-o", raw.format, "table, json, csv or md")
        ->type_name("FORMAT")
        ->group(kOutputGroup)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    command.add_option("-O", options.output, "write to this file, whole or not at all")->type_name("FILE")->group(kOutputGroup);
    command.add_flag("-q,--quiet", options.is_quiet, "no progress and no remarks")->group(kOutputGroup);
    command.add_flag("--no-color", raw.no_color, "no colour in messages (also NO_COLOR)")->group(kOutputGroup);
    command.add_flag("--no-progress", raw.no_progress, "no progress line")->group(kOutputGroup);
    command.footer(kExamples);
}

void add_comparison(CLI::App& command, Options& options, Raw& raw) {
    command.add_option("scenario", options.scenario, "a scenario of data/scenarios, a scenario file, or a NeMo RL recipe (.yaml)")
        ->type_name("");
    add_scenario_options(command, raw);
    add_methods(command, options);
    command.add_option("--step-time", options.steps, "length of your training step, for example 120s")
        ->type_name("TIME,...")
        ->allow_extra_args(false)
        ->delimiter(',')
        ->group(kOutputGroup);
    command.add_flag("--print-config", options.prints_config, "print where each field came from, and stop")->group(kOutputGroup);
    add_output_options(command, options, raw);
}

void add_show(CLI::App& command, Options& options, Raw& raw) {
    command.add_option("what", options.what, "model, layout, rank or maps")
        ->type_name("")
        ->required()
        ->check(CLI::IsMember({"model", "layout", "rank", "maps"}));
    command.add_option("target", options.scenario, "a model, a scenario, or for maps a JSON file of records")->type_name("")->required();
    command.add_option("rank", options.rank, "for rank: its number, trainers first")->type_name("");
    add_scenario_options(command, raw);
    add_output_options(command, options, raw);
}

void add_check(CLI::App& command, Options& options, Raw& raw) {
    command.add_option("scenario", options.scenario, "a scenario, a scenario file, a NeMo RL recipe (.yaml), or a plan file")->type_name("");
    add_scenario_options(command, raw);
    add_methods(command, options);
    add_output_options(command, options, raw);
}

void add_plan(CLI::App& command, Options& options, Raw& raw) {
    command.add_option("scenario", options.scenario, "a scenario, a scenario file, or a NeMo RL recipe (.yaml)")->type_name("");
    command.add_option("--tensors", options.tensors, "a JSON file of explicit tensors: a record, or a list (docs/m2n.md)")
        ->type_name("FILE")
        ->group("What to plan");
    command.add_option("--method", options.methods, "optimal (default; for --tensors m2n), m2n, direct, striped, gather-broadcast, hybrid")
        ->type_name("NAME")
        ->allow_extra_args(false)
        ->group("What to plan");
    command.add_option("--explain", options.explain, "in words: what this rank sends and why, or how this class of tensors travels")
        ->type_name("RANK|TENSOR")
        ->group("What to plan");
    add_scenario_options(command, raw);
    add_output_options(command, options, raw);
}

void add_simulate(CLI::App& command, Options& options, Raw& raw) {
    const char* group = "What to simulate";
    command.add_option("scenario", options.scenario, "a scenario, a scenario file, a NeMo RL recipe (.yaml), or a plan file")->type_name("");
    command.add_option("--method", options.methods, "hybrid (default), gather-broadcast, direct, striped, m2n, optimal")
        ->type_name("NAME")
        ->allow_extra_args(false)
        ->group(group);
    command.add_option("--scenario", options.plan_scenario, "of a plan file: what it was planned for (default: the one that it names)")
        ->type_name("NAME|FILE")
        ->group(group);
    add_scenario_options(command, raw);
    command.add_option("--trace", options.trace, "also write the course as Chrome trace events, which Perfetto opens")
        ->type_name("FILE.json")
        ->group(kOutputGroup);
    command.add_option("--jitter", options.jitter, "also with ranks that are so unlike each other, for example 5%: median and 95 %")
        ->type_name("PERCENT")
        ->group(kOutputGroup);
    command.add_option("--samples", options.samples, "how often to draw them (50)")
        ->type_name("N")
        ->check(CLI::Range(1, 100'000))
        ->group(kOutputGroup);
    command.add_option("--seed", options.seed, "the same seed draws the same (1)")->type_name("N")->group(kOutputGroup);
    command.add_option("--flows", options.flows, "first line: GPUs, GPUs a node, NVLink and NIC rate, flows; then source, destination, bytes a line")
        ->type_name("FILE")
        ->group("A list of flows (docs/flows.md)");
    command.add_option("--quotient", raw.quotient, "on (default) or off: run flows that are alike as one")
        ->type_name("on|off")
        ->check(CLI::IsMember({"on", "off"}))
        ->group("A list of flows (docs/flows.md)");
    command.add_option("--fast", options.fast, "approximate: end flows together that end within this part of the time, for example 0.001")
        ->type_name("PART")
        ->group("A list of flows (docs/flows.md)");
    add_output_options(command, options, raw);
}

void add_validate(CLI::App& command, Options& options, Raw& raw) {
    command.add_option("--records", options.records, "a file of published times like data/published/timings.json (default: that)")
        ->type_name("FILE")
        ->group("What to validate");
    command.add_flag("--simulate", options.simulates, "predict event by event, not by the closed form")->group("What to validate");
    add_output_options(command, options, raw);
}

void add_fit(CLI::App& command, Options& options, Raw& raw) {
    const char* group = "What to fit to";
    command.add_option("--records", options.records, "a file of published times like data/published/timings.json (default: what served there)")
        ->type_name("FILE")
        ->group(group);
    command.add_option("--measured", options.measured, "reports of refits that were measured, beside the records")->type_name("FILE,...")->allow_extra_args(false)->delimiter(',')->group(group);
    command.add_option("--nccl-tests", options.nccl_logs, "text or JSON of all_gather, broadcast or sendrecv; alone, it fits nothing else")
        ->type_name("FILE,...")
        ->allow_extra_args(false)
        ->delimiter(',')
        ->group(group);
    for (const auto& option : io::field_options()) {
        const std::string flag{option.flag};
        if (flag == "--engine" || flag == "--system") {
            command.add_option(flag, raw.fields[flag], flag == "--engine" ? "whose constants (nemo-rl)" : "on which nccl-tests ran")
                ->group(group)
                ->type_name(option.placeholder)
                ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
        }
    }
    add_output_options(command, options, raw);
    command.get_option("-O")->description("write the engine file, with the fitted constants, whole or not at all");
}

void add_membership(CLI::App& command, Options& options, Raw& raw) {
    const char* group = "Scenario";
    command.add_option("scenario", options.scenario, "a scenario, a scenario file, or a NeMo RL recipe (.yaml)")->type_name("");
    command.add_option("--lose", options.lost, "GPUs that go, with their replicas: 1node, 8gpu")
        ->type_name("N(node|gpu)")
        ->allow_extra_args(false)
        ->delimiter(',')
        ->group(group);
    command.add_option("--gain", options.gained, "GPUs that come, as whole replicas: 2node")
        ->type_name("N(node|gpu)")
        ->allow_extra_args(false)
        ->delimiter(',')
        ->group(group);
    add_scenario_options(command, raw);
    add_methods(command, options);
    add_output_options(command, options, raw);
}

void add_commands(CLI::App& app, Options& options, Raw& raw) {
    auto& compare = *app.add_subcommand("compare", "methods side by side: time, traffic, bound, memory, what to try");
    compare.add_flag("--simulate", options.simulates, "also run each method event by event")->group(kOutputGroup);
    compare.add_option("--measured", options.measured, "lay reports of refit-exec beside the predictions")
        ->type_name("FILE,...")
        ->allow_extra_args(false)
        ->delimiter(',')
        ->group(kOutputGroup);
    add_comparison(compare, options, raw);
    add_comparison(*app.add_subcommand("explain", "every term of each method with its formula, values and source"), options, raw);
    add_check(*app.add_subcommand("check", "every reason why a refit cannot run, each with what would"), options, raw);
    add_plan(*app.add_subcommand("plan", "who sends which bytes to whom, hop by hop"), options, raw);
    add_simulate(*app.add_subcommand("simulate", "the course of one method in time: critical path, timeline, links, waits; or when a list of flows ends"), options, raw);
    add_show(*app.add_subcommand("show", "what a model has, who holds what, where every element sits"), options, raw);
    add_validate(*app.add_subcommand("validate", "every published time beside its prediction, and how far off they are"), options, raw);
    add_fit(*app.add_subcommand("fit", "an engine's constants from published or measured times, or from nccl-tests"), options, raw);
    add_membership(*app.add_subcommand("membership", "what losing and adding generation GPUs costs: rebuild against shrink and grow"), options, raw);
}

bool wants_color(const Raw& raw) {
    const char* no_color = std::getenv("NO_COLOR");
    const char* terminal = std::getenv("TERM");
    return !raw.no_color && (no_color == nullptr || *no_color == '\0') &&
           (terminal == nullptr || std::string{terminal} != "dumb");
}

/// Moves the filled fields into the options. Returns a message where a flag has no value or a --set no "=".
std::optional<std::string> collect_fields(const CLI::App& command, const Raw& raw, Options& options) {
    for (const auto& option : io::field_options()) {
        if (command.get_option_no_throw(option.flag) == nullptr) {
            continue;
        }
        const auto& value = raw.fields.at(option.flag);
        if (command.count(option.flag) > 0 && value.empty()) {
            return std::string{option.flag} + " has an empty value";
        }
        if (!value.empty()) {
            options.fields.emplace_back(option.field, value);
            options.field_flags.emplace_back(option.flag);
        }
    }
    for (const auto& item : raw.nics) {
        const auto equals = item.find('=');
        if (equals == std::string::npos || equals == 0) {
            return "--nic takes RANK=down or RANK=RATE, not '" + item + "'";
        }
        options.fields.emplace_back("fabric.nics." + item.substr(0, equals), item.substr(equals + 1));
        options.field_flags.emplace_back("--nic " + item.substr(0, equals));
    }
    for (const auto& item : raw.sets) {
        const auto equals = item.find('=');
        if (equals == std::string::npos || equals == 0) {
            return "--set takes FIELD=VALUE, not '" + item + "'";
        }
        options.fields.emplace_back(item.substr(0, equals), item.substr(equals + 1));
        options.field_flags.emplace_back("--set " + item.substr(0, equals));
    }
    return std::nullopt;
}

/// A message of CLI11 with the nearest command or option where a word is unknown.
std::string explain_parse_error(const CLI::App& app, const CLI::ParseError& error, int argc, const char* const* argv) {
    if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr && dynamic_cast<const CLI::RequiredError*>(&error) == nullptr) {
        return error.what();
    }
    std::vector<std::string> commands;
    for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        commands.push_back(command->get_name());
    }
    const std::string first = argc > 1 ? argv[1] : "";
    if (std::ranges::find(commands, first) == commands.end()) {
        return first.empty() ? "which command? " + join_names(commands)
                             : "unknown command '" + first + "'; did you mean '" + nearest_name(first, commands) + "'?";
    }
    std::vector<std::string> flags;
    for (const auto* option : app.get_subcommand(first)->get_options()) {
        for (const auto& name : option->get_lnames()) {
            flags.push_back("--" + name);
        }
    }
    for (int i = 2; i < argc; ++i) {
        const std::string word{argv[i]};
        const auto name = word.substr(0, word.find('='));
        if (name.starts_with("--") && std::ranges::find(flags, name) == flags.end()) {
            return "unknown option '" + name + "'; did you mean '" + nearest_name(name, flags) + "'?";
        }
    }
    return error.what();
}

}  // namespace

const char* name_of(Command command) noexcept {
    switch (command) {
        case Command::kExplain:
            return "explain";
        case Command::kCheck:
            return "check";
        case Command::kPlan:
            return "plan";
        case Command::kSimulate:
            return "simulate";
        case Command::kShow:
            return "show";
        case Command::kValidate:
            return "validate";
        case Command::kFit:
            return "fit";
        case Command::kMembership:
            return "membership";
        case Command::kCompare:
            break;
    }
    return "compare";
}

std::string program_name() {
    const char* name = std::getenv("REFIT_CALLED_AS");
    return name != nullptr && *name != '\0' ? name : "refit";
}

ExitCode usage_error(const std::string& message) {
    std::cerr << "refit: " << message << "\nTry: " << program_name() << " --help\n";
    return kUsageError;
}

Parsed parse_options(int argc, const char* const* argv) {
    CLI::App app{"Refit predicts how long fresh weights take from training to inference GPUs, what limits it, and what would be faster.", "refit"};
    app.set_version_flag("--version", std::string{"refit "} + REFIT_VERSION);
    app.require_subcommand(1);
    app.footer(kExamples);
    Options options;
    Raw raw;
    add_commands(app, options, raw);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& done) {
        app.exit(done, std::cout, std::cerr);
        std::cout << std::flush;
        return std::cout ? kOk : kIoError;
    } catch (const CLI::ParseError& error) {
        return usage_error(explain_parse_error(app, error, argc, argv));
    }
    const auto* command = app.get_subcommands().front();
    options.command = *std::ranges::find(kCommands, command->get_name(), [](Command known) { return std::string{name_of(known)}; });
    if (!kFormats.contains(raw.format)) {
        return usage_error("unknown format '" + raw.format + "'; did you mean '" + nearest_name(raw.format, kFormatNames) +
                           "'? There are " + join_names(kFormatNames));
    }
    options.format = kFormats.at(raw.format);
    options.has_quotient = raw.quotient == "on";
    options.has_color = wants_color(raw);
    options.shows_progress = !raw.no_progress && !options.is_quiet;
    if (const auto message = collect_fields(*command, raw, options)) {
        return usage_error(*message);
    }
    return options;
}

}  // namespace refit::cli
