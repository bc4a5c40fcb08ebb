// SPDX-License-Identifier: Apache-2.0
// The MPI transport on 16 ranks against MPI_Alltoallv of the same bytes, in turns in one job: ratios of
// medians, since what a machine's memory gives swings threefold. Starts itself under mpirun. Exit code 1
// where a ratio is above its limit.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <mpi.h>
#include <unistd.h>

#include "../executor/small_jobs.hpp"
#include "refit/exec/mpi_transport.hpp"

namespace {

using namespace refit;
using namespace refit::exec;

constexpr int kRanks = 16;
constexpr int kRounds = 11;
constexpr std::uint64_t kPair = 1U << 20U;  ///< Bytes of each of 64 pairs: 64 MiB.

double median(std::vector<double> times) {
    std::ranges::sort(times);
    return times[times.size() / 2];
}

/// What trainers send to generators, as one call of bytes without any order to keep.
class RawAlltoall {
public:
    explicit RawAlltoall(int rank) {
        for (int peer = 0; peer < kRanks; ++peer) {
            const int pair = static_cast<int>(kPair);
            sends_.push_back(rank < 8 && peer >= 8 ? pair : 0);
            receives_.push_back(rank >= 8 && peer < 8 ? pair : 0);
            places_.push_back(peer % 8 * pair);
        }
        send_.assign(8 * kPair, std::byte{1});
        receive_.assign(8 * kPair, std::byte{2});
    }
    double run() {
        MPI_Barrier(MPI_COMM_WORLD);
        double seconds = -MPI_Wtime();
        MPI_Alltoallv(send_.data(),
                      sends_.data(),
                      places_.data(),
                      MPI_BYTE,
                      receive_.data(),
                      receives_.data(),
                      places_.data(),
                      MPI_BYTE,
                      MPI_COMM_WORLD);
        seconds += MPI_Wtime();
        MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return seconds;
    }

private:
    std::vector<int> sends_, receives_, places_;
    std::vector<std::byte> send_, receive_;
};

int compare(int rank, const std::string& name, const study::Layout& layout) {
    const auto small = testing_support::job_of(name, layout, Method::kDirect, 8);
    const auto schedule = small.schedule();
    const auto by_types = make_mpi_transport();
    const auto packed = make_mpi_transport();
    Job job;
    job.schedule = &schedule;
    RawAlltoall raw{rank};
    std::vector<double> times[3];
    for (Transport* transport : {by_types.get(), packed.get()}) {
        job.packs = transport == packed.get();
        if (!transport->prepare(job) || !transport->fill(1)) {
            return 1;
        }
    }
    for (int round = 0; round < kRounds; ++round) {
        times[0].push_back(raw.run());
        times[1].push_back(by_types->run().value().seconds.value());
        times[2].push_back(packed->run().value().seconds.value());
    }
    for (Transport* transport : {by_types.get(), packed.get()}) {
        if (transport->verify(1).value().mismatch) {
            return 1;
        }
    }
    const double base = median(times[0]);
    const double types_ratio = median(times[1]) / base;
    const double packed_ratio = median(times[2]) / base;
    if (rank == 0) {
        std::printf(
            "mpi, %s: raw Alltoallv %.1f ms; datatypes %.2f times (at most 2.0), packed %.2f times (at most "
            "3.2)\n",
            name.c_str(),
            base * 1e3,
            types_ratio,
            packed_ratio);
    }
    return types_ratio <= 2.0 && packed_ratio <= 3.2 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
    if (std::getenv("OMPI_COMM_WORLD_RANK") == nullptr) {
        for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT",
                                 "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                                 "OMPI_MCA_rmaps_base_oversubscribe",
                                 "OMPI_MCA_mpi_yield_when_idle"}) {
            setenv(name, "1", 1);
        }
        execlp(
            "mpirun", "mpirun", "-np", std::to_string(kRanks).c_str(), words[0], static_cast<char*>(nullptr));
        return 1;
    }
    exec::prepare_mpi();
    MPI_Init(&count, &words);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    // [64, 512, 1024] BF16: runs of 256 B at the trainers, and of 16 KiB at the generators where they cut the
    // middle axis.
    int code = compare(rank, "EP8 to TP8, 64 MiB", {{64, 512, 1024}, 8, 1, 1, 1, 8, 1});
    code += compare(rank, "dense TP8 to TP8 along rows, 64 MiB", {{8192, 4096}, 8, 1, 1, 1, 8, 1});
    MPI_Finalize();
    return code == 0 ? 0 : 1;
}
