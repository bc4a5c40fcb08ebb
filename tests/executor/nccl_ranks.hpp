// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "async_device.hpp"
#include "fake_nccl.hpp"
#include "nccl_transport_on.hpp"
#include "refit/exec/host.hpp"
#include "refit/exec/measure.hpp"

namespace refit::exec::nccl_ranks {

using namespace std::chrono_literals;
using testing_support::AsyncDevice;

/// How the ranks' devices and jobs differ.
struct Ways {
    bool runs_one_kernel = false;
    std::uint32_t cannot_capture = program::kNone;  ///< A rank whose device refuses.
    std::chrono::microseconds pause{0};             ///< That what rank 3 begins takes at least.
    std::function<void(std::uint32_t rank, Job& job)> change;
};

struct Outcome {
    Result<Measurement> measured = Failure{{}};
    std::string machine;
    std::size_t replays = 0;
    Connecting connecting;
};

/// Runs a job with a thread for each rank.
inline std::vector<Outcome> run_ranks(const Job& job, const Repeats& repeats, const Ways& ways = {}) {
    testing_support::reset_nccl();
    const auto members = job.schedule->members();
    const auto ranks = static_cast<std::uint32_t>(members.size());
    const auto library = testing_support::fake_nccl();
    static int jobs = 0;
    const auto meeting = std::filesystem::temp_directory_path() /
                         ("refit-nccl-" + std::to_string(::getpid()) + "-" + std::to_string(++jobs));
    std::vector<Outcome> outcomes(ranks);
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
            Job own = job;
            if (ways.change) {
                ways.change(rank, own);
            }
            auto device = std::make_unique<AsyncDevice>(rank, ways.runs_one_kernel);
            auto* const kept = device.get();
            kept->cannot_capture_ = rank == ways.cannot_capture;
            kept->pause_ = rank == 3 ? ways.pause : 0us;
            const auto transport = nccl::make_transport_on(
                library,
                std::move(device),
                [](bool) {},
                {rank, ranks, 0},
                {"file://" + meeting.string(), {}},
                [](InjectionKind) {});
            outcomes[rank].measured = measure(*transport, own, repeats);
            outcomes[rank].machine = transport->machine();
            outcomes[rank].replays = kept->replays_;
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(testing_support::nccl_faults(), std::vector<std::string>{});
    EXPECT_EQ(testing_support::nccl_counts().communicators, 0) << "left behind";
    return outcomes;
}

/// `repeats` as the ranks had them: each run has values of its own.
inline void expect_like_host(const std::vector<Outcome>& outcomes,
                             const Job& job,
                             const Repeats& repeats,
                             const std::string& name) {
    Job sound = job;
    sound.injections.clear();
    const auto host = make_host_transport();
    const auto expected = measure(*host, sound, repeats).value();
    for (const Outcome& outcome : outcomes) {
        ASSERT_TRUE(outcome.measured.has_value()) << name << ": " << outcome.measured.error().front().message;
        EXPECT_EQ(outcome.measured->elements, expected.elements) << name;
        for (std::size_t rank = 0; rank < expected.records.size(); ++rank) {
            EXPECT_EQ(outcome.measured->records[rank].checksum, expected.records[rank].checksum) << name;
        }
    }
}

}  // namespace refit::exec::nccl_ranks
