// SPDX-License-Identifier: Apache-2.0
// What each rank of the tests of the MPI transport runs:
//   mpi_rank plans                       every layout by every method, on 16 ranks; one line a plan
//   mpi_rank fault KIND:RANK@WAVE MS     one plan with an injected fault and a deadline
// Exit code 0: all ran and were verified.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include <mpi.h>

#include "refit/exec/mpi_transport.hpp"
#include "small_jobs.hpp"
#include "tight_settings.hpp"

namespace {

using namespace refit;
using namespace refit::exec;

/// Empty where a plan ran twice and was verified, by all ranks; else what went wrong.
std::string run(const program::Schedule& schedule, const Job& settings) {
    const auto transport = make_mpi_transport();
    Job job = settings;
    job.schedule = &schedule;
    if (const auto prepared = transport->prepare(job); !prepared) {
        return prepared.error().front().rule + ": " + prepared.error().front().message;
    }
    for (const std::uint64_t version : {7U, 8U}) {
        const auto filled = transport->fill(version);
        const auto iteration = transport->run();
        const auto verification = transport->verify(version);
        if (!filled || !iteration || !verification) {
            return "a call failed";
        }
        if (verification->mismatch) {
            const Mismatch& mismatch = *verification->mismatch;
            return "not-verified: rank " + std::to_string(mismatch.rank) + ", " +
                   program::describe(schedule.workload(), mismatch.tensor) + ", element " +
                   std::to_string(mismatch.element) + ", wave " + std::to_string(mismatch.wave) +
                   ", from rank " + std::to_string(mismatch.giver) +
                   (transport->old_weights_stand() ? "; old weights stand" : "");
        }
        if (verification->records.size() != schedule.ranks() || iteration->ranks.size() != schedule.ranks() ||
            verification->elements == 0) {
            return "a rank is missing";
        }
    }
    if (!transport->old_weights_stand()) {
        return "the old weights are gone before the flip";
    }
    const auto flipped = transport->flip();
    return flipped && !transport->old_weights_stand() ? "" : "not flipped";
}

/// Plans of random distributions that have as many ranks as the job.
void add_random_jobs(std::uint32_t ranks, std::vector<testing_support::SmallJob>& jobs) {
    const std::size_t most = jobs.size() + 12;
    for (std::uint64_t seed = 0; seed < 400 && jobs.size() < most; ++seed) {
        testing_support::Dice dice{seed};
        auto refit = testing_support::random_refit(dice, testing_support::small_nodes(8), 600);
        if (refit.cluster.gpus() != ranks) {
            continue;
        }
        for (const Method method : testing_support::kMethods) {
            auto plan = make_plan(method, refit.cluster, refit.rates, refit.workload).value();
            jobs.push_back({"random " + std::to_string(seed) + ", " + std::string{name_of(method)},
                            refit.cluster,
                            refit.workload,
                            std::move(plan)});
        }
    }
}

int run_plans(std::uint32_t rank, std::uint32_t ranks) {
    std::vector<testing_support::SmallJob> jobs;
    for (const auto& [name, layout] : testing_support::layouts_of_16()) {
        for (const Method method : testing_support::kMethods) {
            jobs.push_back(testing_support::job_of(name, layout, method, 4));
        }
    }
    add_random_jobs(ranks, jobs);
    int failures = 0;
    for (std::size_t index = 0; index < jobs.size(); ++index) {
        const auto schedule = index % 2 == 0 ? jobs[index].schedule() : jobs[index].schedule(testing_support::tight_settings());
        Job job;
        job.packs = index / 2 % 2 != 0;
        const std::string fault = run(schedule, job);
        failures += fault.empty() ? 0 : 1;
        if (rank == 0) {
            std::printf("%s: %s\n", jobs[index].name.c_str(), fault.empty() ? "verified" : fault.c_str());
        }
    }
    return failures == 0 ? 0 : 1;
}

int run_fault(const char* text, const char* deadline, std::uint32_t rank) {
    const auto injection = parse_injection(text);
    if (!injection) {
        return 2;
    }
    Job job;
    job.deadline = std::chrono::milliseconds{std::strtol(deadline, nullptr, 10)};
    job.injections = {*injection};
    const auto layout = testing_support::layouts_of_16()[1].second;
    const auto small = testing_support::job_of("", layout, Method::kDirect, 4);
    program::Settings settings;
    settings.most_operations = 2;
    const auto schedule = small.schedule(settings);
    const std::string fault = run(schedule, job);
    if (rank == 0) {
        std::printf("%u waves: %s\n", schedule.waves(), fault.empty() ? "verified" : fault.c_str());
    }
    return fault.empty() ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
    exec::prepare_mpi();
    MPI_Init(&count, &words);
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int code = 2;
    if (count == 2 && std::string_view{words[1]} == "plans") {
        code = run_plans(static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(ranks));
    } else if (count == 4 && std::string_view{words[1]} == "fault") {
        code = run_fault(words[2], words[3], static_cast<std::uint32_t>(rank));
    }
    // mpirun ends a job when one of its processes fails, though others may have text left to write.
    std::fflush(stdout);
    MPI_Finalize();
    return code;
}
