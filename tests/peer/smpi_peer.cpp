// SPDX-License-Identifier: Apache-2.0
// The MPI transport under SimGrid's SMPI, an independent clock:
//   smpi_peer CASE METHOD   against the simulator; exit code 0 where they agree as they should
//   smpi_peer SCENARIO METHOD MODEL   the same for a shipped scenario with another model: teaching-matrix/16
//   smpi_peer CASE beats    optimal against striped; exit code 0 where it takes at most 0.9 of its time
// All ranks are actors of one process, and share its memory: nothing of ours has state outside the transport.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <mpi.h>
#include <simgrid/s4u.hpp>
#include <smpi/smpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../shipped.hpp"
#include "refit/exec/mpi_transport.hpp"
#include "refit/simulate.hpp"
#include "smpi_cases.hpp"
#include "smpi_platform.hpp"

namespace {

using namespace refit;

/// Rates at their line rates, one tensor, links alone.
double simulated_seconds(const testing_support::SmallJob& job) {
    auto scenario = shipped_scenario("reshard-two-domains", {});
    scenario.cluster = job.cluster;
    scenario.engine.constants.nic_efficiency.value = 1.0;
    scenario.engine.constants.nvlink_efficiency.value = 1.0;
    SimulateOptions options;
    options.graph.has_software = false;
    return simulate(job.plan, job.workload, scenario, options).value().transfer_seconds;
}

/// What every rank does. The first one's result is the job's.
struct Outcome {
    double seconds = 0;
    std::uint32_t waves = 0;
    int verified = 0;  ///< Ranks.
};

void run_rank(const program::Schedule& schedule, Outcome& outcome) {
    MPI_Init(nullptr, nullptr);
    {
        const auto transport = exec::make_mpi_transport();
        exec::Job settings;
        settings.schedule = &schedule;
        if (transport->prepare(settings) && transport->fill(1)) {
            const auto iteration = transport->run();
            const auto verification = transport->verify(1);
            if (iteration && verification && !verification->mismatch) {
                ++outcome.verified;
                outcome.seconds = iteration->seconds.value();
                outcome.waves = schedule.waves();
            }
        }
    }
    MPI_Finalize();
}

Outcome smpi_run(const testing_support::SmallJob& job,
                 const program::Settings& settings,
                 const Fabric& fabric) {
    std::vector<std::string> words{"smpi_peer",
                                   "--cfg=network/model:CM02",
                                   "--cfg=network/TCP-gamma:0",
                                   "--cfg=network/bandwidth-factor:1",
                                   "--cfg=network/latency-factor:1",
                                   "--cfg=network/weight-S:0",
                                   "--cfg=network/crosstraffic:0",
                                   "--cfg=network/loopback-bw:1e13",
                                   "--cfg=network/loopback-lat:0",
                                   "--log=root.thres:error"};
    std::vector<char*> pointers;
    std::ranges::transform(
        words, std::back_inserter(pointers), [](std::string& word) { return word.data(); });
    int count = static_cast<int>(pointers.size());
    simgrid::s4u::Engine engine{&count, pointers.data()};
    SMPI_init();
    for (const char* const option : {"smpi/simulate-computation:0",
                                     "smpi/host-speed:1Gf",
                                     "smpi/async-small-thresh:0",
                                     "smpi/send-is-detached-thresh:0",
                                     "smpi/os:0:0:0",
                                     "smpi/or:0:0:0",
                                     "smpi/ois:0:0:0",
                                     "smpi/wtime:0",
                                     "smpi/test:0",
                                     "smpi/iprobe:0"}) {
        simgrid::s4u::Engine::set_config(option);
    }
    const auto file =
        std::filesystem::temp_directory_path() / ("refit-smpi-" + std::to_string(::getpid()) + ".xml");
    testing_support::write_smpi_platform(fabric, file);
    engine.load_platform(file);
    std::filesystem::remove(file);
    const auto schedule = job.schedule(settings);
    Outcome outcome;
    SMPI_app_instance_register("refit", nullptr, static_cast<int>(schedule.ranks()));
    for (std::uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
        const auto name = "r" + std::to_string(rank);
        auto actor = simgrid::s4u::Actor::init(name, simgrid::s4u::Host::by_name(name));
        actor->set_property("instance_id", "refit");
        actor->set_property("rank", std::to_string(rank));
        actor->start([&] { run_rank(schedule, outcome); });
    }
    engine.run();
    SMPI_finalize();
    return outcome;
}

/// SimGrid runs once a process.
Outcome in_child(const testing_support::SmallJob& job) {
    int ends[2] = {};
    if (::pipe(ends) != 0) {
        return {};
    }
    std::fflush(stdout);
    const auto child = ::fork();
    if (child == 0) {
        const Fabric fabric{job.cluster, port_rates(job.cluster, 1, 1)};
        const Outcome outcome = smpi_run(job, testing_support::one_wave(), fabric);
        const bool is_sent = ::write(ends[1], &outcome, sizeof(outcome)) == sizeof(outcome);
        ::_exit(is_sent ? 0 : 1);
    }
    ::close(ends[1]);
    Outcome outcome;
    if (::read(ends[0], &outcome, sizeof(outcome)) != sizeof(outcome)) {
        outcome = {};
    }
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);
    return outcome;
}

/// A shipped scenario, its model's widths divided: M2N plans its calls, not explicit layouts.
testing_support::SmallJob job_of_scenario(const std::string& name, const char* model, Method method) {
    const auto scenario = shipped_scenario(name, {{"model", model}});
    auto workload = Workload::make(scenario);
    auto plan = make_plan(method, scenario, workload).value();
    return {name, scenario.cluster, std::move(workload), std::move(plan)};
}

bool agrees(const testing_support::SmallJob& job, Method method) {
    const Outcome outcome = in_child(job);
    const double expected = simulated_seconds(job);
    std::printf("%s, %s: smpi %.6e s, simulator %.6e s, ratio %.5f, %u waves\n",
                job.name.c_str(),
                std::string{name_of(method)}.c_str(),
                outcome.seconds,
                expected,
                outcome.seconds / expected,
                outcome.waves);
    const double tolerance = job.name.starts_with("small") ? 0.05 : 0.01;
    return outcome.verified == static_cast<int>(job.ranks()) &&
           std::abs(outcome.seconds / expected - 1) <= tolerance;
}

bool beats(const testing_support::SmpiCase& one) {
    const Outcome optimal = in_child(testing_support::smpi_job(one, Method::kOptimal));
    const Outcome striped = in_child(testing_support::smpi_job(one, Method::kStriped));
    std::printf("%s: optimal %.6e s, striped %.6e s, ratio %.3f\n",
                one.name.c_str(),
                optimal.seconds,
                striped.seconds,
                optimal.seconds / striped.seconds);
    return optimal.verified > 0 && striped.verified > 0 && optimal.seconds <= 0.9 * striped.seconds;
}

}  // namespace

int main(int count, char** words) {
    if (count == 4) {
        const auto method = parse_method(words[2]);
        return method && agrees(job_of_scenario(words[1], words[3], *method), *method) ? 0 : 1;
    }
    for (const auto& one : testing_support::smpi_cases()) {
        if (count != 3 || one.name != words[1]) {
            continue;
        }
        if (std::string_view{words[2]} == "beats") {
            return beats(one) ? 0 : 1;
        }
        const auto method = parse_method(words[2]);
        return method && agrees(testing_support::smpi_job(one, *method), *method) ? 0 : 1;
    }
    return 2;
}
