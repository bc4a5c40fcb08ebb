// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <cstdlib>
#include <iostream>
#include <map>

#include <CLI/CLI.hpp>

#include "refit/suggest.hpp"

namespace refit::exec {
namespace {

constexpr const char* kExamples = R"(
Examples:
  refit plan deepseek-v3-h100 --model deepseek-v3/64 --method striped -O plan.json
  refit-exec plan.json                       move it on this machine, and prove every element
  refit-exec plan.json --runs 20 -o json -O measured.json
  refit compare --measured measured.json     beside the prediction
  refit-exec probe -O here.json              a system file of this machine

Exit codes: 0 moved and verified, 2 usage, 3 input not understood, 4 cannot run here, 5 not supported, 6 file
trouble, 7 the refit failed, or did not verify.)";

const std::map<std::string, Format> kFormats{
    {"table", Format::kTable}, {"json", Format::kJson}, {"md", Format::kMarkdown}};

void add_run_options(CLI::App& app, Options& options) {
    const char* group = "How to run it";
    app.add_option("plan", options.plan, "a plan file (refit plan -O), or probe: measure this machine")
        ->type_name("");
    app.add_option("--transport", options.transport, "host (default), mpi, cuda or nccl")
        ->type_name("NAME")
        ->group(group);
    app.add_option("--warmup", options.warm_up, "runs before those that count (1)")
        ->type_name("N")
        ->check(CLI::Range(0, 100'000))
        ->group(group);
    app.add_option("--runs", options.runs, "runs that count (5)")
        ->type_name("N")
        ->check(CLI::Range(1, 100'000))
        ->group(group);
    app.add_option("--deadline", options.deadline, "for each run; who holds it up is named then (30s)")
        ->type_name("TIME")
        ->group(group);
    app.add_option("--threads", options.threads, "of one process (as many as there are cores)")
        ->type_name("N")
        ->check(CLI::Range(1, 1024))
        ->group(group);
    app.add_flag("--stream", options.streams, "stores that bypass the caches")->group(group);
    app.add_flag("--packed", options.packs, "mpi: pack strided messages, not let MPI walk them")->group(group);
    app.add_flag("--graphs", options.graphs, "cuda, nccl: one CUDA graph for each stage, from the second run on")
        ->group(group);
    app.add_flag("--one-communicator", options.one_communicator, "nccl: none of its own for each NVLink domain")
        ->group(group);
    app.add_flag("--shrink", options.shrinks, "nccl: go on within the run without ranks that die, by ncclCommShrink")
        ->group(group);
    app.add_option("--wave", options.wave_bytes, "what a rank sends or receives in a wave (256MiB)")
        ->type_name("SIZE")
        ->group(group);
    app.add_option("--pack", options.pack_bytes, "what trainers gather at a time (256MiB)")
        ->type_name("SIZE")
        ->group(group);
    app.add_option(
           "--system", options.system, "a system file that probe wrote here: says what it predicts, too")
        ->type_name("FILE")
        ->group(group);
    app.add_option("--data",
                   options.data,
                   "move the safetensors shards of this folder, not made-up values (docs/executor.md)")
        ->type_name("DIR")
        ->group(group);
    app.add_option("--resume-without",
                   options.lost,
                   "plan again for the ranks that are left, and run that: 3,7-9 (docs/executor.md)")
        ->type_name("RANKS")
        ->group(group);
    app.add_option("--inject",
                   options.injections,
                   "a fault, to see how a run ends: dies, stalls, slows, memory, plan, version or corrupts")
        ->type_name("KIND:RANK@WAVE")
        ->allow_extra_args(false)
        ->group(group);
}

}  // namespace

std::string program_name() {
    const char* name = std::getenv("REFIT_CALLED_AS");
    return name != nullptr && *name != '\0' ? std::string{name} + " exec" : "refit-exec";
}

cli::ExitCode usage_error(const std::string& message) {
    std::cerr << "refit-exec: " << message << "\nTry: " << program_name() << " --help\n";
    return cli::kUsageError;
}

Parsed parse_options(int argc, const char* const* argv) {
    CLI::App app{
        "Runs a plan for real: every rank's bytes move, every element is proved, and the time is measured.",
        "refit-exec"};
    app.set_version_flag("--version", std::string{"refit-exec "} + REFIT_VERSION);
    app.footer(kExamples);
    Options options;
    std::string format = "table";
    add_run_options(app, options);
    const char* group = "What to show";
    app.add_option("-o", format, "table, json or md")->type_name("FORMAT")->group(group);
    app.add_option("-O", options.output, "write to this file, whole or not at all")
        ->type_name("FILE")
        ->group(group);
    app.add_flag("-q,--quiet", options.is_quiet, "no remarks")->group(group);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& done) {
        app.exit(done, std::cout, std::cerr);
        std::cout << std::flush;
        return std::cout ? cli::kOk : cli::kIoError;
    } catch (const CLI::ParseError& error) {
        return usage_error(error.what());
    }
    if (options.plan.empty()) {
        return usage_error("which plan? Name a file that refit plan -O wrote, or probe");
    }
    options.words.assign(argv + 1, argv + argc);
    options.command = options.plan == "probe" ? Command::kProbe : Command::kRun;
    const auto found = kFormats.find(format);
    if (found == kFormats.end()) {
        return usage_error("unknown format '" + format + "'; there are table, json and md");
    }
    options.format = found->second;
    return options;
}

}  // namespace refit::exec
