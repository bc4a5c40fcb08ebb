// SPDX-License-Identifier: Apache-2.0
// The transport of GPUs on devices that are host memory: everything of it but the calls of CUDA themselves.
#include "device_transport.hpp"

#include <gtest/gtest.h>

#include "device_waves.hpp"
#include "host_device.hpp"
#include "refit/exec/host.hpp"
#include "refit/exec/measure.hpp"
#include "small_jobs.hpp"
#include "tight_settings.hpp"

namespace refit::exec {
namespace {

using testing_support::HostDevice;

std::vector<std::unique_ptr<Device>> host_devices(std::size_t count) {
    std::vector<std::unique_ptr<Device>> devices;
    for (std::size_t i = 0; i < count; ++i) {
        devices.push_back(std::make_unique<HostDevice>());
    }
    return devices;
}

std::vector<testing_support::SmallJob> small_jobs() {
    std::vector<testing_support::SmallJob> jobs;
    for (const auto& [name, layout] : testing_support::layouts_of_16()) {
        for (const Method method : testing_support::kMethods) {
            jobs.push_back(testing_support::job_of(name, layout, method, 4));
        }
    }
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
        testing_support::Dice dice{seed};
        auto refit = testing_support::random_refit(dice, testing_support::small_nodes(8), 600);
        const Method method = testing_support::kMethods[seed % 4];
        auto plan = make_plan(method, refit.cluster, refit.rates, refit.workload).value();
        jobs.push_back({"random " + std::to_string(seed), refit.cluster, refit.workload, std::move(plan)});
    }
    return jobs;
}

TEST(DeviceTransport, VerifiesEveryPlanAndLeavesTheRecordsThatTheHostDoes) {
    std::size_t turn = 0;
    for (const auto& small : small_jobs()) {
        const auto schedule = small.schedule(turn % 2 == 0 ? program::Settings{} : testing_support::tight_settings());
        Job job;
        job.schedule = &schedule;
        const auto devices = make_device_transport(host_devices(1 + turn++ % 3));
        const auto host = make_host_transport();
        const auto measured = measure(*devices, job, {0, 2});
        ASSERT_TRUE(measured.has_value()) << small.name << ": " << measured.error().front().message;
        const auto expected = measure(*host, job, {0, 2}).value();
        EXPECT_EQ(measured->elements, expected.elements) << small.name;
        ASSERT_EQ(measured->records.size(), expected.records.size());
        for (std::size_t rank = 0; rank < expected.records.size(); ++rank) {
            EXPECT_EQ(measured->records[rank].checksum, expected.records[rank].checksum)
                << small.name << ", " << rank;
            EXPECT_EQ(measured->records[rank].digest, expected.records[rank].digest);
        }
    }
}

TEST(DeviceTransport, ReplaysGraphsFromTheSecondRunOnAndVerifies) {
    std::size_t turn = 0;
    for (const auto& small : small_jobs()) {
        const auto schedule = small.schedule(turn % 2 == 0 ? program::Settings{} : testing_support::tight_settings());
        Job job;
        job.schedule = &schedule;
        job.graphs = true;
        auto list = host_devices(1 + turn++ % 3);
        auto* const first = dynamic_cast<HostDevice*>(list.front().get());
        first->cannot_capture_ = turn % 5 == 0;
        const auto transport = make_device_transport(std::move(list));
        const auto measured = measure(*transport, job, {1, 2});
        ASSERT_TRUE(measured.has_value()) << small.name << ": " << measured.error().front().message;
        // The second and the third run replay one graph for each stage that has waves.
        EXPECT_EQ(first->replays_ > 0, !first->cannot_capture_) << small.name;
        EXPECT_EQ(first->replays_ % 2, 0U);
        EXPECT_EQ(transport->machine().ends_with("CUDA graphs"), !first->cannot_capture_);
    }
}

TEST(DeviceTransport, PostsWaveByWaveWhereAFaultIsToStrike) {
    const auto small =
        testing_support::job_of("", testing_support::layouts_of_16()[1].second, Method::kDirect, 4);
    const auto schedule = small.schedule();
    Job job;
    job.schedule = &schedule;
    job.graphs = true;
    job.injections = {{InjectionKind::kCorrupts, 2, 0}};
    const auto transport = make_device_transport(host_devices(1));
    const auto measured = measure(*transport, job, {1, 2});
    ASSERT_FALSE(measured.has_value());
    EXPECT_EQ(measured.error().front().rule, "not-verified");
}

TEST(DeviceTransport, NamesTheElementThatWasSpoiledAndWhoGaveIt) {
    const auto small =
        testing_support::job_of("", testing_support::layouts_of_16()[1].second, Method::kDirect, 4);
    const auto schedule = small.schedule();
    Job job;
    job.schedule = &schedule;
    job.injections = {{InjectionKind::kCorrupts, 2, 0}};
    const auto transport = make_device_transport(host_devices(2));
    ASSERT_TRUE(transport->prepare(job) && transport->fill(5) && transport->run());
    const auto verification = transport->verify(5).value();
    ASSERT_TRUE(verification.mismatch.has_value());
    EXPECT_EQ(verification.mismatch->giver, 2U);
    EXPECT_EQ(verification.mismatch->wave, 0U);
    EXPECT_EQ(verification.mismatch->found, verification.mismatch->expected ^ 1U);
    EXPECT_LT(verification.records.size(), schedule.ranks());
    EXPECT_TRUE(transport->old_weights_stand());
    // The source was mended: the next run is right.
    Job sound = job;
    sound.injections.clear();
    const auto again = make_device_transport(host_devices(2));
    ASSERT_TRUE(again->prepare(sound) && again->fill(5) && again->run());
    EXPECT_FALSE(again->verify(5)->mismatch.has_value());
}

/// TP4 with two copies: trainer 5 and its peer 1 hold the same.
TEST(DeviceTransport, GoesOnWithoutALostRank) {
    const auto layout = testing_support::layouts_of_16()[3].second;
    for (const auto method : testing_support::kMethods) {
        const auto small = testing_support::job_of("", layout, method, 4, {{5}, {}});
        const auto schedule = small.schedule();
        Job job;
        job.schedule = &schedule;
        const auto transport = make_device_transport(host_devices(2));
        const auto measured = measure(*transport, job, {0, 1});
        ASSERT_TRUE(measured) << measured.error().front().message;
        EXPECT_EQ(measured->records.size(), schedule.ranks() - 1);
        EXPECT_EQ(measured->ranks.size(), schedule.ranks() - 1);
    }
}

TEST(DeviceTransport, RefusesBeforeItAllocatesWhatDoesNotFit) {
    const auto small =
        testing_support::job_of("", testing_support::layouts_of_16()[0].second, Method::kDirect, 4);
    const auto schedule = small.schedule();
    Job job;
    job.schedule = &schedule;
    auto device = std::make_unique<HostDevice>();
    device->room_ = 1000;
    std::vector<std::unique_ptr<Device>> devices;
    devices.push_back(std::move(device));
    const auto prepared = make_device_transport(std::move(devices))->prepare(job);
    ASSERT_FALSE(prepared.has_value());
    EXPECT_NE(prepared.error().front().message.find("1000 bytes"), std::string::npos)
        << prepared.error().front().message;
}

TEST(DeviceTransport, GivesUpAtTheDeadlineOnADeviceThatIsNeverDone) {
    HostDevice device;
    device.is_stuck_ = true;
    const auto done = settle(device, std::chrono::milliseconds{20});
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().front().rule, "deadline");
}

TEST(DeviceWaves, RefusesOperationsWithOneEnd) {
    const auto small =
        testing_support::job_of("", testing_support::layouts_of_16()[0].second, Method::kDirect, 4);
    const auto schedule = small.schedule();
    std::vector<program::RankProgram> programs;
    std::vector<std::vector<StagedWave>> staged;
    for (std::uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
        programs.push_back(schedule.program_of(rank));
        staged.push_back(staged_waves(programs.back(), {programs.back().regions, {}}, 0));
    }
    EXPECT_EQ(carries_of(programs, staged, 0).size(), 64U);
    staged[0][0].messages.pop_back();
    EXPECT_THROW((void)carries_of(programs, staged, 0), std::logic_error);
}

// A message of 256 KiB that lies as one stretch is moved where it lies; one byte less is packed.
TEST(StagedProgram, MovesLargeStretchesWhereTheyLie) {
    const study::Layout layout{{8, 512, 256}, 4, 1, 1, 1, 1, 1};
    const auto small = testing_support::job_of("", layout, Method::kDirect, 4);
    const auto schedule = small.schedule();
    const auto program = schedule.program_of(0);
    const RankView view{program.regions, {1U << 20U, 0, 0}};
    // A quarter of 8 x 512 x 256 BF16: 524,288 B.
    ASSERT_EQ(program.waves[0].operations.size(), 1U);
    ASSERT_EQ(program.waves[0].operations[0].bytes, 524288U);
    EXPECT_EQ(staging_bytes(program, view), 0U);
    const auto whole = staged_waves(program, view, 256);
    EXPECT_TRUE(whole[0].packs.empty());
    EXPECT_EQ(whole[0].messages[0].address, std::uint64_t{1} << 20U);
    EXPECT_EQ(staging_bytes(program, view, 524289), 524288U);
    const auto packed = staged_waves(program, view, 256, 524289);
    EXPECT_EQ(packed[0].packs.size(), 1U);
    EXPECT_EQ(packed[0].messages[0].address, 256U);
}

}  // namespace
}  // namespace refit::exec
