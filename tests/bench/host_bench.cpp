// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "refit/exec/host.hpp"
#include "refit/exec/measure.hpp"
#include "refit/io/library.hpp"
#include "refit/methods.hpp"

namespace refit::exec {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kRanks = 8;
constexpr std::uint64_t kBytes = std::uint64_t{256} << 20U;

std::vector<Shard> shards_of(const std::vector<std::uint64_t>& shape, std::size_t axis) {
    std::vector<Shard> shards;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        const Interval part{shape[axis] * rank / kRanks, shape[axis] * (rank + 1) / kRanks};
        shards.push_back({{Box::whole(shape).with(axis, part)}, {rank}});
    }
    return shards;
}

/// Rows of 8 trainers to columns of 8 generators: runs of so many bytes.
Workload rows_to_columns(std::uint64_t run) {
    ParameterClass parameter;
    parameter.name = "w";
    parameter.shape = {kBytes / (run * kRanks), run * kRanks / 2};
    const Distribution source{parameter.shape, shards_of(parameter.shape, 0)};
    const Distribution destination{parameter.shape, shards_of(parameter.shape, 1)};
    return Workload::of({{parameter, source, {destination}, {{0, 0, 1}}}}, 1, kRanks, kRanks);
}

/// The same bytes by memcpy, in as many pieces as there are pairs of ranks, by as many threads.
class Baseline {
public:
    explicit Baseline(std::uint32_t threads)
        : threads_{threads}, from_(kBytes, std::byte{1}), to_(kBytes, std::byte{2}) {}

    double seconds() {
        constexpr std::uint64_t kPieces = kRanks * kRanks;
        const auto begin = Clock::now();
        std::vector<std::thread> workers;
        for (std::uint32_t thread = 0; thread < threads_; ++thread) {
            workers.emplace_back([&, thread] {
                for (auto piece = thread; piece < kPieces; piece += threads_) {
                    std::memcpy(to_.data() + piece * (kBytes / kPieces),
                                from_.data() + piece * (kBytes / kPieces),
                                kBytes / kPieces);
                }
            });
        }
        std::ranges::for_each(workers, [](std::thread& worker) { worker.join(); });
        return std::chrono::duration<double>(Clock::now() - begin).count();
    }

private:
    std::uint32_t threads_;
    std::vector<std::byte> from_;
    std::vector<std::byte> to_;
};

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

/// The median ratio of a run of the plan to a memcpy just before it. Negative: it failed.
double ratio(std::uint64_t run, bool streams, std::uint32_t threads, const System& system) {
    constexpr int kRounds = 11;
    const auto workload = rows_to_columns(run);
    const Cluster cluster{system, system, kRanks, kRanks, Placement{8, 8, true}};
    const auto plan = make_plan(Method::kDirect, cluster, port_rates(cluster, 1.0, 1.0), workload).value();
    const program::Schedule schedule{plan, workload, kRanks};
    Job job;
    job.schedule = &schedule;
    job.threads = threads;
    job.streams = streams;
    const auto transport = make_host_transport();
    if (!transport->prepare(job) || !transport->fill(1)) {
        return -1.0;
    }
    Baseline baseline{threads};
    std::vector<double> ratios;
    for (int round = 0; round <= kRounds; ++round) {
        const auto copied = baseline.seconds();
        const auto moved = transport->run();
        if (!moved) {
            return -1.0;
        }
        if (round > 0) {
            ratios.push_back(moved->seconds.value() / copied);
        }
    }
    const auto verified = transport->verify(1);
    return verified && !verified->mismatch ? median(std::move(ratios)) : -1.0;
}

int run_all() {
    const auto system = io::Library::open(REFIT_DATA_DIR).value().system("h100-nvl8", "system").value();
    const auto threads = std::max(1U, std::thread::hardware_concurrency());
    std::printf(
        "host transport over memcpy of the same bytes, 256 MiB, %u threads, interleaved, medians of 11\n",
        threads);
    std::printf("%10s %10s %10s %8s\n", "run", "plain", "streaming", "at most");
    bool holds = true;
    for (const std::uint64_t run : {64U, 256U, 1024U, 16384U}) {
        const auto limit = run >= 256 ? 1.5 : 1.6;
        const auto plain = ratio(run, false, threads, system);
        const auto streamed = ratio(run, true, threads, system);
        std::printf(
            "%8llu B %10.2f %10.2f %8.1f\n", static_cast<unsigned long long>(run), plain, streamed, limit);
        holds = holds && plain > 0 && streamed > 0 && plain <= limit;
    }
    return holds ? 0 : 1;
}

}  // namespace
}  // namespace refit::exec

int main() {
    return refit::exec::run_all();
}
