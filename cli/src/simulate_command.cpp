// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <functional>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cells.hpp"
#include "check_plan.hpp"
#include "commands.hpp"
#include "interrupt.hpp"
#include "progress.hpp"
#include "refit/check.hpp"
#include "refit/compare.hpp"
#include "refit/estimate.hpp"
#include "refit/io/plan_file.hpp"
#include "refit/io/report_json.hpp"
#include "refit/io/simulation_json.hpp"
#include "refit/io/trace.hpp"
#include "refit/methods.hpp"
#include "refit/simulate.hpp"
#include "session.hpp"
#include "simulate_rows.hpp"
#include "simulate_table.hpp"

namespace refit::cli {
namespace {

/// What is simulated.
struct Job {
    const Scenario& scenario;
    const Workload& workload;
    const Plan& plan;
    bool is_from_file = false;
    std::string target;
};

/// Writes a file in pieces; Ctrl-C meanwhile ends the program and leaves no part of the file behind. A pipe
/// or device, where a write may wait for long, has nothing to leave behind: there Ctrl-C ends the program as
/// ever.
Result<bool> write_interruptible(const std::string& file,
                                 const std::function<bool(const io::TextSink&)>& produce) {
    std::error_code error;
    const auto kind = std::filesystem::status(file, error).type();
    if (kind != std::filesystem::file_type::regular && kind != std::filesystem::file_type::not_found) {
        return io::write_whole(file, produce);
    }
    const Interrupt interrupt;
    return io::write_whole(file, [&](const io::TextSink& sink) {
        const auto checked = [&](std::string_view text) { return !interrupt.is_raised() && sink(text); };
        return produce(checked) && !interrupt.is_raised();
    });
}

/// The closed form of this very plan: a plan file need not hold what the method would plan today.
void estimate_plan(MethodReport& report, const Job& job) {
    const auto loads = make_loads(job.plan, job.scenario.cluster);
    const auto setting = make_setting(job.scenario, job.workload);
    auto estimated = estimate(loads, setting);
    const auto range = estimate_range(loads, setting, report.is_calibrated);
    report.seconds = estimated.total;
    report.low = range.low;
    report.high = range.high;
    report.transfer = estimated.transfer;
    report.network = Bytes{loads.traffic.network_bytes()};
    report.nvlink = Bytes{loads.traffic.nvlink_bytes()};
    report.phases = std::move(estimated.phases);
    report.terms = std::move(estimated.terms);
}

/// "5%" as a spread of links and hosts; nothing where none is asked for.
Result<std::optional<Jitter>> jitter_of(const Options& options) {
    if (options.jitter.empty()) {
        return std::optional<Jitter>{};
    }
    char* end = nullptr;
    const auto percent = std::strtod(options.jitter.c_str(), &end);
    if (end == options.jitter.c_str() || std::string_view{end} != "%" || !(percent >= 0.0 && percent <= 100.0)) {
        return fail(ErrorCode::kInvalidInput,
                    "jitter",
                    "'" + options.jitter + "' is no percentage from 0% to 100%, for example 5%",
                    "--jitter");
    }
    return std::optional{Jitter{percent / 100.0, percent / 100.0, options.samples, options.seed}};
}

std::string rendered(const ShownSimulation& shown, const Options& options) {
    if (options.format == Format::kMarkdown) {
        return simulate_markdown(shown);
    }
    if (options.format == Format::kTable) {
        return simulate_table(shown);
    }
    auto report = io::to_json(shown.report, shown.scenario);
    report["simulation"] = io::to_json(shown.simulation, shown.estimate, shown.scenario.cluster);
    if (shown.jitter) {
        report["simulation"]["jitter"] = io::to_json(shown.jitter->jitter, shown.jitter->times);
    }
    return report.dump(1) + "\n";
}

/// The timeline goes out task by task.
int write_timeline(const ShownSimulation& shown, const Options& options) {
    const auto produce = [&](const io::TextSink& sink) {
        return write_timeline_csv(shown.simulation, shown.scenario.cluster, sink);
    };
    if (options.output.empty()) {
        const bool is_whole =
            produce([](std::string_view text) { return static_cast<bool>(std::cout << text); });
        std::cout << std::flush;
        return is_whole && std::cout ? kOk : kIoError;
    }
    const auto written = write_interruptible(options.output, produce);
    return written ? kOk : refuse(written.error(), options);
}

int write_trace_file(const ShownSimulation& shown, const Options& options) {
    io::TraceSize size;
    const auto written = write_interruptible(options.trace, [&](const io::TextSink& sink) {
        size = io::write_trace(shown.simulation, shown.scenario.cluster, sink);
        return size.is_whole;
    });
    if (!written) {
        return refuse(written.error(), options);
    }
    if (!options.is_quiet) {
        std::cerr << options.trace << ": " << grouped(size.slices) << " slices, " << grouped(size.points)
                  << " counter values, " << grouped(size.arrows) << " arrows; open it at ui.perfetto.dev\n";
        if (size.merged > 1 || !size.has_activities) {
            std::cerr << "  " << grouped(shown.simulation.graph.tasks.size())
                      << " tasks are too many to draw each: up to " << grouped(size.merged)
                      << " packs, tensors or messages share a slice (-o csv has all)\n";
        }
    }
    return kOk;
}

/// The number of streams that the closed form would try, tried by simulation.
std::optional<StreamTrial> try_streams(const Job& job, const Report& report, double seconds) {
    for (const auto& trial : report.trials) {
        if (trial.change.field == "engine.options.NRL_REFIT_NUM_STREAMS") {
            auto changed = job.scenario;
            changed.engine.options.streams = static_cast<std::uint32_t>(std::stoul(trial.change.value));
            const auto run = simulate(job.plan, job.workload, changed);
            if (run && run->seconds() < 0.99 * seconds) {
                return StreamTrial{changed.engine.options.streams, run->seconds()};
            }
        }
    }
    return std::nullopt;
}

int answer(const Job& job, const Options& options, const io::Library& library) {
    const auto published = library.published();
    if (!published) {
        return refuse(published.error(), options);
    }
    const auto jitter = jitter_of(options);
    if (!jitter) {
        return refuse(jitter.error(), options);
    }
    std::optional<Report> report;
    std::optional<Simulation> simulation;
    std::optional<StreamTrial> streams;
    std::optional<ShownJitter> samples;
    {
        Progress progress{options.shows_progress};
        SimulateOptions how;
        how.has_segments = true;
        how.is_cancelled = [&] {
            progress.tell("simulating", 0.3);
            return false;
        };
        progress.tell("tasks", 0.2);
        auto run = simulate(job.plan, job.workload, job.scenario, how);
        if (!run) {
            return refuse(run.error(), options);
        }
        simulation = std::move(*run);
        if (*jitter) {
            auto times = sample_jitter(simulation->graph, job.scenario.cluster, **jitter, how.is_cancelled);
            if (!times) {
                return refuse(times.error(), options);
            }
            samples = ShownJitter{**jitter, std::move(*times)};
        }
        CompareRequest request;
        request.methods = {job.plan.method};
        request.published = *published;
        request.progress = [&](std::string_view what, double done) { progress.tell(what, 0.8 + 0.2 * done); };
        report = compare(job.scenario, request);
        if (options.format == Format::kTable) {
            streams = try_streams(job, *report, simulation->seconds());
        }
    }
    if (job.is_from_file) {
        estimate_plan(report->methods.front(), job);
    }
    set_simulated(report->methods.front(), {Seconds{simulation->seconds()}, Seconds{simulation->transfer_seconds}});
    const ShownSimulation shown{
        job.scenario, *report, report->methods.front(), *simulation, job.target, streams, samples};
    if (!options.trace.empty()) {
        if (const auto status = write_trace_file(shown, options); status != kOk) {
            return status;
        }
    }
    return options.format == Format::kCsv ? write_timeline(shown, options)
                                          : write_output(rendered(shown, options), options);
}

int simulate_scenario(const Options& options, const io::Library& library) {
    Faults faults;
    auto method = Method::kHybrid;
    for (const auto& name : options.methods) {
        auto asked = parse_method(name);
        if (!asked) {
            asked.error().front().where = "--method";
        }
        method = take(std::move(asked), faults).value_or(method);
    }
    const auto draft = take(collect_draft(options, library, faults), faults);
    if (draft && draft->fields().empty() && faults.empty()) {
        return usage_error(which_refit(options));
    }
    const auto scenario = draft ? take(io::resolve(*draft, library), faults) : std::nullopt;
    if (!faults.empty()) {
        return refuse(faults, options, draft ? &*draft : nullptr, &library);
    }
    const auto workload = Workload::make(*scenario);
    const auto plan = make_plan(method, *scenario, workload);
    if (!plan) {
        return refuse(plan.error(), options, &*draft, &library);
    }
    return answer({*scenario, workload, *plan, false, options.scenario}, options, library);
}

Faults other_job(const io::PlanFile& file, const std::string& name) {
    return {{ErrorCode::kInvalidInput,
             "plan-scenario",
             "the plan moves other weights, or to other ranks or domains, than the scenario '" + name +
                 "'; name the one it was made for (--scenario), with the flags it was made with",
             file.name.empty() ? "--scenario" : file.name}};
}

/// A plan file tells who sends what, but not how fast its machines and engine are: those come from a
/// scenario.
int simulate_plan(const Options& options, const io::Library& library) {
    auto file = read_plan_file(options.scenario);
    if (!file) {
        return refuse(file.error(), options);
    }
    auto asked = options;
    asked.scenario = options.plan_scenario.empty() ? file->name : options.plan_scenario;
    Faults faults;
    const auto draft = take(collect_draft(asked, library, faults), faults);
    const auto scenario = draft && faults.empty() ? take(io::resolve(*draft, library), faults) : std::nullopt;
    if (!faults.empty()) {
        for (auto& fault : faults) {
            fault.message +=
                "; a plan file has neither rates nor software costs, so --scenario names the one it was made "
                "for";
        }
        return refuse(faults, asked, draft ? &*draft : nullptr, &library);
    }
    const auto workload = Workload::make(*scenario);
    if (!io::is_same_job(*file, *scenario, workload)) {
        return refuse(other_job(*file, scenario->name), options);
    }
    if (const auto wrong = check_plan(
            file->plan, file->workload, JobSize{file->train_gpus, file->gpus() - file->train_gpus});
        !wrong.empty()) {
        return refuse(wrong, options);
    }
    return answer({*scenario, workload, file->plan, true, options.scenario}, options, library);
}

}  // namespace

int run_simulate(const Options& options, const io::Library& library) {
    if (options.methods.size() > 1) {
        return usage_error("simulate takes one --method");
    }
    if (is_plan_file(options.scenario)) {
        return options.methods.empty() ? simulate_plan(options, library)
                                       : usage_error("the plan file tells the method; leave --method out");
    }
    if (!options.plan_scenario.empty()) {
        return usage_error("--scenario goes with a plan file, and '" + options.scenario + "' is none");
    }
    return simulate_scenario(options, library);
}

}  // namespace refit::cli
