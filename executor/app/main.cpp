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
#include "refit/wrap.hpp"
#include "report.hpp"
#include "resume.hpp"

namespace refit::exec {
namespace {

/// Of messages. Unit: columns.
constexpr std::size_t kWidth = 100;

/// Each fault, and what the user may conclude.
int refuse(const Faults& faults, bool has_run) {
    std::cerr << "refit-exec: " << (has_run ? "the refit failed" : "this cannot run") << ": " << faults.size()
              << (faults.size() == 1 ? " fault" : " faults") << (has_run ? "." : ". Nothing was moved.")
              << "\n\n";
    std::size_t number = 0;
    for (const auto& fault : faults) {
        const std::string begin = "  " + std::to_string(++number) + ". ";
        std::cerr << begin << wrap(fault.message, kWidth, begin.size()) << "\n"
                  << (fault.where.empty() ? "" : "     at " + fault.where + "\n");
        if (fault.nearest && fault.nearest->field == "lost") {
            const std::string offer = "try --resume-without " + fault.nearest->value + ", " + fault.nearest->note;
            std::cerr << "     " << wrap(offer, kWidth, 5) << "\n";
        }
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
    refuse_flag(options.shrinks && !is_nccl, "shrink", "only the transport nccl shrinks communicators", "--shrink");
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
    request.job.shrinks = options.shrinks;
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

/// The plan's scenario, planned again without more ranks, and proven.
Result<io::PlanFile> proven_without(const io::PlanFile& file, const std::string& ranks) {
    auto rest = planned_without(file, ranks);
    if (rest) {
        if (auto faults = proof_faults(*rest); !faults.empty()) {
            return fail(std::move(faults));
        }
    }
    return rest;
}

/// The plan that the processes begin with: where they shrink, that of all of them.
Result<io::PlanFile> asked_plan(const Options& options) {
    auto file = proven_plan(options.plan);
    return !file || options.lost.empty() || options.shrinks ? file : proven_without(*file, options.lost);
}

/// How those who are left can go on, where they can: without the ranks that a failure names.
std::string way_on(const Options& options, const io::PlanFile& file, const std::vector<std::uint32_t>& failed) {
    if (failed.empty() || (file.changes.empty() && file.scenario.empty())) {
        return {};
    }
    const auto ranks = ranks_text(failed);
    const auto rest = planned_without(file, ranks);
    if (!rest) {
        return "\n" + wrap("Without " + ranks + " it cannot go on: " + rest.error().front().message + ".", kWidth, 0) + "\n";
    }
    const bool has_processes = options.transport == "mpi" || options.transport == "nccl";
    const auto left = has_processes ? survivors(rest->workload.losses(), rest->gpus()).size() : 0;
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

/// A plan that is run: what a job refers to.
struct Planned {
    io::PlanFile file;
    program::Schedule schedule;

    Planned(io::PlanFile plan, const program::Settings& settings)
        : file{std::move(plan)}, schedule{file.plan, file.workload, file.train_gpus, settings} {}
    Planned(const Planned&) = delete;
    Planned& operator=(const Planned&) = delete;
};

/// A refit of all ranks, and of those who are left of them.
class Session {
public:
    Session(const Options& options, Request& request, Transport& transport, io::PlanFile file)
        : options_{options}, request_{request}, transport_{transport} {
        enter(std::move(file));
    }

    [[nodiscard]] const Planned& planned() const { return *planned_.back(); }

    /// Runs the plan; where ranks can be left out within the run, and are to be, goes on without them. Nothing: this
    /// process's rank takes no part any more.
    std::optional<Result<Measurement>> run(const Repeats& repeats) {
        if (options_.shrinks && !options_.lost.empty()) {
            if (auto left = leave(); !left) {
                return Failure{left.error()};
            }
            if (is_absent()) {
                return std::nullopt;
            }
        }
        while (true) {
            auto measured = measure(transport_, request_.job, repeats);
            const auto failed = transport_.failed_ranks();
            if (measured || failed.empty() || !transport_.can_go_on()) {
                return measured;
            }
            auto rest = proven_without(planned().file, ranks_text(failed));
            if (!rest) {
                return measured;
            }
            if (transport_.reports()) {
                const auto& why = measured.error().front().message;
                std::cerr << wrap("refit-exec: " + why + ". Going on without " + ranks_text(failed) + ".", kWidth, 0) << "\n";
            }
            enter(std::move(*rest));
            if (is_absent()) {
                return std::nullopt;
            }
        }
    }

private:
    void enter(io::PlanFile file) {
        planned_.push_back(std::make_unique<Planned>(std::move(file), request_.settings));
        request_.job.schedule = &planned().schedule;
        request_.job.domain_starts = planned().file.domain_starts;
        std::erase_if(request_.job.injections, [&](const Injection& injection) {
            return planned().file.workload.losses().is_absent(injection.rank);
        });
    }

    [[nodiscard]] bool is_absent() const {
        const auto rank = transport_.own_rank();
        return rank && planned().file.workload.losses().is_absent(*rank);
    }

    /// All ranks meet, so that those who are left out leave a job that is whole.
    Result<void> leave() {
        auto rest = proven_without(planned().file, options_.lost);
        if (!rest) {
            return Failure{rest.error()};
        }
        if (rest->workload.losses().is_absent(planned().schedule.members().front())) {
            return fail(ErrorCode::kInvalidInput,
                        "lost-ranks",
                        "the first rank leads the job and cannot leave it; without --shrink those who are left "
                        "begin anew",
                        "--shrink");
        }
        auto met = transport_.prepare(request_.job);
        if (met) {
            enter(std::move(*rest));
        }
        return met;
    }

    const Options& options_;
    Request& request_;
    Transport& transport_;
    std::vector<std::unique_ptr<Planned>> planned_;  ///< The last one is run; transports may refer to those before.
};

Faults injection_faults(const Request& request, const io::PlanFile& file) {
    for (const auto& injection : request.job.injections) {
        const auto rank = std::to_string(injection.rank);
        const bool is_rank = injection.rank < file.gpus();
        if (!is_rank || file.workload.losses().is_absent(injection.rank)) {
            const auto what = is_rank ? "rank " + rank + " takes no part"
                                      : "there is no rank " + rank + ": the plan's are 0 to " +
                                            std::to_string(file.gpus() - 1);
            return {{ErrorCode::kInvalidInput, "injection", what, "--inject"}};
        }
    }
    return {};
}

/// Tells the user how it ended.
int tell(const Options& options,
         const Transport& transport,
         const Planned& planned,
         const Result<Measurement>& measurement,
         const std::optional<HostPrediction>& prediction) {
    if (!measurement) {
        const bool has_run = !is_refusal(measurement.error());
        if (!transport.reports()) {
            return has_run ? kRunFailed : cli::exit_code_of(measurement.error());
        }
        const auto code = refuse(measurement.error(), has_run);
        std::cerr << way_on(options, planned.file, transport.failed_ranks());
        return code;
    }
    if (!transport.reports()) {
        return cli::kOk;
    }
    const Measured measured{planned.file,
                            *measurement,
                            std::string{transport.name()},
                            transport.machine(),
                            planned.schedule.waves(),
                            prediction ? std::optional{prediction->seconds()} : std::nullopt,
                            prediction ? prediction->slowdown() : 1.0,
                            transport.connecting()};
    return write_output(options.format == Format::kJson
                            ? report_json(measured).dump(1) + "\n"
                            : report_text(measured, options.format == Format::kMarkdown),
                        options);
}

int run_plan(const Options& options) {
    auto request = read_request(options);
    if (!request) {
        return refuse(request.error(), false);
    }
    auto transport = make_transport(request->transport);
    if (!transport) {
        return refuse(transport.error(), false);
    }
    auto file = asked_plan(options);
    if (!file) {
        return refuse(file.error(), false);
    }
    if (const auto faults = injection_faults(*request, *file); !faults.empty()) {
        return refuse(faults, false);
    }
    if (options.pack_bytes.empty() && request->transport == TransportKind::kHost) {
        request->settings.pack_bytes =
            pack_for(this_machine().available, file->train_gpus, request->settings.pack_bytes);
    }
    Session session{options, *request, **transport, std::move(*file)};
    std::unique_ptr<TensorSource> data;
    if (!options.data.empty()) {
        auto opened = open_checkpoint(options.data, session.planned().file.workload);
        if (!opened) {
            return refuse(opened.error(), false);
        }
        data = std::move(*opened);
        request->job.data = data.get();
    }
    Repeats repeats{options.warm_up, options.runs};
    std::optional<HostPrediction> prediction;
    if (!options.system.empty()) {
        auto made = HostPrediction::make(options, session.planned().schedule);
        if (!made) {
            return refuse(made.error(), false);
        }
        prediction = std::move(*made);
        repeats.between = [&] { return prediction->compare_moment(); };
    }
    const auto measurement = session.run(repeats);
    return measurement ? tell(options, **transport, session.planned(), *measurement, prediction) : cli::kOk;
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
