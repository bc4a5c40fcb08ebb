// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "checkpoint.hpp"
#include "options.hpp"
#include "rates_file.hpp"
#include "refit/check.hpp"
#include "refit/exec/host_rates.hpp"
#include "refit/exec/machine.hpp"
#include "refit/exec/measure.hpp"
#include "refit/exec/transport_kind.hpp"
#include "refit/exec/yardstick.hpp"
#include "refit/io/json_file.hpp"
#include "refit/io/plan_file.hpp"
#include "refit/quantity.hpp"
#include "report.hpp"
#include "resume.hpp"

namespace refit::exec {
namespace {

/// One fault a line, and what the user may conclude.
int refuse(const Faults& faults, bool has_run) {
    std::cerr << "refit-exec: " << (has_run ? "the refit failed" : "this cannot run") << ": " << faults.size()
              << (faults.size() == 1 ? " fault" : " faults") << (has_run ? "." : ". Nothing was moved.")
              << "\n\n";
    std::size_t number = 0;
    for (const auto& fault : faults) {
        std::cerr << "  " << ++number << ". " << fault.message
                  << (fault.where.empty() ? "" : "\n     at " + fault.where) << "\n";
        const bool has_offer = fault.nearest && fault.nearest->field == "lost";
        std::cerr << (has_offer ? "     try --resume-without " + fault.nearest->value + ", " + fault.nearest->note + "\n" : "");
    }
    if (has_run &&
        std::ranges::none_of(faults, [](const Fault& fault) { return fault.rule == "old-weights-lost"; })) {
        std::cerr << "\nThe generators still serve the weights from before the refit.\n";
    }
    return has_run ? kRunFailed : cli::exit_code_of(faults);
}

/// Faults of the request itself, not of a run.
bool is_refusal(const Faults& faults) {
    const auto& rule = faults.front().rule;
    return rule == "too-little-memory" || rule == "transport" ||
           faults.front().code == ErrorCode::kInvalidInput || faults.front().code == ErrorCode::kIo;
}

/// What the options say beside the plan.
struct Request {
    TransportKind transport = TransportKind::kHost;
    Job job;
    program::Settings settings;
};

/// Faults of options that the transport does not have.
void refuse_for_transport(const Options& options, TransportKind transport, Faults& faults) {
    const bool is_host = transport == TransportKind::kHost;
    const bool is_mpi = transport == TransportKind::kMpi;
    const bool is_nccl = transport == TransportKind::kNccl;
    const bool has_gpus = is_nccl || transport == TransportKind::kCuda;
    const auto refuse_flag = [&](bool is_wrong, const char* rule, const std::string& what, const char* flag) {
        if (is_wrong) {
            faults.push_back({ErrorCode::kInvalidInput,
                              rule,
                              what + "; " + std::string{name_of(transport)} + " was asked for",
                              flag});
        }
    };
    refuse_flag(options.packs && !is_mpi,
                "packed",
                "only the transport mpi chooses between packing and MPI's own walk",
                "--packed");
    refuse_flag(!options.system.empty() && !is_host,
                "system",
                "rates of a probe predict the transport host alone",
                "--system");
    refuse_flag(options.graphs && !has_gpus, "graphs", "only the transports cuda and nccl have graphs", "--graphs");
    refuse_flag(options.one_communicator && !is_nccl,
                "communicator",
                "only the transport nccl has communicators",
                "--one-communicator");
    refuse_flag(!options.data.empty() && has_gpus,
                "data",
                "only the transports host and mpi move the tensors of files",
                "--data");
}

Result<Request> read_request(const Options& options) {
    Faults faults;
    Request request;
    request.transport = take(parse_transport(options.transport), faults).value_or(TransportKind::kHost);
    const auto amount = [&](const std::string& text, const char* flag, Bytes& bytes) {
        if (!text.empty()) {
            auto read = parse_bytes(text);
            if (!read) {
                read.error().front().where = flag;
            }
            bytes = take(std::move(read), faults).value_or(bytes);
        }
    };
    amount(options.wave_bytes, "--wave", request.settings.wave_bytes);
    amount(options.pack_bytes, "--pack", request.settings.pack_bytes);
    auto deadline = parse_duration(options.deadline);
    if (!deadline) {
        deadline.error().front().where = "--deadline";
    }
    if (const auto seconds = take(std::move(deadline), faults)) {
        request.job.deadline = std::chrono::milliseconds{static_cast<std::int64_t>(seconds->value() * 1e3)};
    }
    for (const auto& text : options.injections) {
        if (const auto injection = take(parse_injection(text), faults)) {
            request.job.injections.push_back(*injection);
        }
    }
    request.job.threads = options.threads;
    request.job.streams = options.streams;
    request.job.packs = options.packs;
    request.job.graphs = options.graphs;
    request.job.one_communicator = options.one_communicator;
    refuse_for_transport(options, request.transport, faults);
    return faults.empty() ? Result<Request>{request} : fail(std::move(faults));
}

int write_output(const std::string& text, const Options& options) {
    if (options.output.empty()) {
        std::cout << text << std::flush;
        return std::cout ? cli::kOk : cli::kIoError;
    }
    const auto written = io::write_whole(options.output, text);
    return written ? cli::kOk : refuse(written.error(), false);
}

Faults proof_faults(const io::PlanFile& file) {
    return check_plan(file.plan, file.workload, JobSize{file.train_gpus, file.gpus() - file.train_gpus});
}

Result<io::PlanFile> proven_plan(const std::string& name) {
    constexpr std::size_t kMostBytes = std::size_t{4} << 30U;
    const auto text = io::read_text(name, kMostBytes);
    if (!text) {
        return Failure{text.error()};
    }
    auto file = io::read_plan(*text, name);
    if (file) {
        auto faults = proof_faults(*file);
        if (!faults.empty()) {
            return fail(std::move(faults));
        }
    }
    return file;
}

/// The plan, or that of those who are left.
Result<io::PlanFile> asked_plan(const Options& options) {
    auto file = proven_plan(options.plan);
    if (!file || options.lost.empty()) {
        return file;
    }
    auto rest = planned_without(*file, options.lost);
    if (rest) {
        if (auto faults = proof_faults(*rest); !faults.empty()) {
            return fail(std::move(faults));
        }
    }
    return rest;
}

/// How those who are left can go on, where they can: without the ranks that a failure names.
std::string way_on(const Options& options, const io::PlanFile& file, const std::vector<std::uint32_t>& failed) {
    if (failed.empty() || (file.changes.empty() && file.scenario.empty())) {
        return {};
    }
    const auto ranks = ranks_text(failed);
    const auto rest = planned_without(file, ranks);
    if (!rest) {
        return "\nWithout " + ranks + " it cannot go on: " + rest.error().front().message + ".\n";
    }
    const auto left = options.transport == "mpi" ? survivors(rest->workload.losses(), rest->gpus()).size() : 0;
    return "\nThose who are left can go on:\n  " + resume_command(options, ranks_text(rest->workload.losses().lost), left) + "\n";
}

/// Packs of which an eighth of the memory holds one a trainer, where all trainers share it.
Bytes pack_for(Bytes available, std::uint32_t trainers, Bytes usual) {
    constexpr std::uint64_t kLeast = std::uint64_t{1} << 20U;
    return Bytes{std::clamp(available.count() / 8 / std::max(trainers, 1U), kLeast, usual.count())};
}

/// What the transport `host` should take by the rates of a probe, and how this moment compares with the probe's.
class HostPrediction {
public:
    static Result<HostPrediction> make(const Options& options, const program::Schedule& schedule) {
        const auto rates = read_host_rates(options.system);
        if (!rates) {
            return Failure{rates.error()};
        }
        auto yardstick = Yardstick::make(rates->threads, Bytes{this_machine().available.count() / 4});
        if (!yardstick) {
            return Failure{std::move(yardstick.error())};
        }
        return HostPrediction{predict_host(schedule, *rates), rates->yardstick, std::move(*yardstick)};
    }

    [[nodiscard]] Result<void> compare_moment() {
        const auto now = yardstick_.measure();
        if (!now) {
            return Failure{now.error()};
        }
        moments_.push_back(*now);
        return {};
    }

    [[nodiscard]] Seconds seconds() const noexcept { return seconds_; }
    [[nodiscard]] double slowdown() const { return spread_of(moments_).median / then_; }

private:
    HostPrediction(Seconds seconds, Seconds then, Yardstick yardstick)
        : seconds_{seconds}, then_{then}, yardstick_{std::move(yardstick)} {}

    Seconds seconds_;
    Seconds then_;
    Yardstick yardstick_;
    std::vector<Seconds> moments_;
};

int run_plan(const Options& options) {
    auto request = read_request(options);
    if (!request) {
        return refuse(request.error(), false);
    }
    auto transport = make_transport(request->transport);
    if (!transport) {
        return refuse(transport.error(), false);
    }
    const auto file = asked_plan(options);
    if (!file) {
        return refuse(file.error(), false);
    }
    if (request->transport == TransportKind::kNccl && !file->workload.losses().empty()) {
        return refuse({{ErrorCode::kUnsupported,
                        "lost-ranks",
                        "the transport nccl runs plans of all ranks only; host, mpi and cuda leave out those that are lost",
                        "--transport"}},
                      false);
    }
    for (const auto& injection : request->job.injections) {
        if (injection.rank >= file->gpus()) {
            return refuse({{ErrorCode::kInvalidInput,
                            "injection",
                            "there is no rank " + std::to_string(injection.rank) + ": the plan's are 0 to " +
                                std::to_string(file->gpus() - 1),
                            "--inject"}},
                          false);
        }
        if (file->workload.losses().is_absent(injection.rank)) {
            return refuse({{ErrorCode::kInvalidInput,
                            "injection",
                            "rank " + std::to_string(injection.rank) + " takes no part",
                            "--inject"}},
                          false);
        }
    }
    if (options.pack_bytes.empty() && request->transport == TransportKind::kHost) {
        request->settings.pack_bytes =
            pack_for(this_machine().available, file->train_gpus, request->settings.pack_bytes);
    }
    const program::Schedule schedule{file->plan, file->workload, file->train_gpus, request->settings};
    request->job.schedule = &schedule;
    request->job.domain_starts = file->domain_starts;
    std::unique_ptr<TensorSource> data;
    if (!options.data.empty()) {
        auto opened = open_checkpoint(options.data, file->workload);
        if (!opened) {
            return refuse(opened.error(), false);
        }
        data = std::move(*opened);
        request->job.data = data.get();
    }
    Repeats repeats{options.warm_up, options.runs};
    std::optional<HostPrediction> prediction;
    if (!options.system.empty()) {
        auto made = HostPrediction::make(options, schedule);
        if (!made) {
            return refuse(made.error(), false);
        }
        prediction = std::move(*made);
        repeats.between = [&] { return prediction->compare_moment(); };
    }
    const auto measurement = measure(**transport, request->job, repeats);
    if (!measurement) {
        const bool has_run = !is_refusal(measurement.error());
        if (!(*transport)->reports()) {
            return has_run ? kRunFailed : cli::exit_code_of(measurement.error());
        }
        const auto code = refuse(measurement.error(), has_run);
        std::cerr << way_on(options, *file, (*transport)->failed_ranks());
        return code;
    }
    if (!(*transport)->reports()) {
        return cli::kOk;
    }
    const Measured measured{*file,
                            *measurement,
                            std::string{(*transport)->name()},
                            (*transport)->machine(),
                            schedule.waves(),
                            prediction ? std::optional{prediction->seconds()} : std::nullopt,
                            prediction ? prediction->slowdown() : 1.0};
    return write_output(options.format == Format::kJson
                            ? report_json(measured).dump(1) + "\n"
                            : report_text(measured, options.format == Format::kMarkdown),
                        options);
}

int probe(const Options& options) {
    if (options.transport != "host") {
        return refuse(
            {{ErrorCode::kUnsupported, "probe", "probe measures the transport host alone", "--transport"}},
            false);
    }
    const auto machine = this_machine();
    const bool has_terminal = isatty(STDERR_FILENO) == 1 && !options.is_quiet;
    const auto rates = probe_host(options.threads == 0 ? machine.cores : options.threads,
                                  Bytes{machine.available.count() / 4},
                                  [&](double done) {
                                      if (has_terminal) {
                                          std::cerr << "\r\033[K  " << static_cast<int>(done * 100) << " %"
                                                    << std::flush;
                                      }
                                  });
    std::cerr << (has_terminal ? "\r\033[K" : "");
    return rates ? write_output(system_json(*rates, machine).dump(1) + "\n", options)
                 : refuse(rates.error(), true);
}

int run(const Options& options) {
    return options.command == Command::kProbe ? probe(options) : run_plan(options);
}

}  // namespace
}  // namespace refit::exec

int main(int argc, char** argv) {
    try {
        const auto parsed = refit::exec::parse_options(argc, argv);
        if (const auto* code = std::get_if<refit::cli::ExitCode>(&parsed)) {
            return *code;
        }
        return refit::exec::run(std::get<refit::exec::Options>(parsed));
    } catch (const std::exception& error) {
        std::cerr << "refit-exec: internal error: " << error.what()
                  << "\nPlease report this with the command that you ran.\n";
        return refit::cli::kInternalError;
    }
}
