// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "refit/plan.hpp"
#include "refit/program.hpp"
#include "refit/units.hpp"
#include "refit/workload.hpp"

namespace refit::program {

/// How an executor cuts a plan into waves.
struct Settings {
    /// Of one rank in a wave, sends and receives together. Range: >= 2.
    /// Source: 8 to 16 peers a wave keep NICs full, and one NCCL kernel takes 254 batches (docs/executor.md).
    std::uint32_t most_operations = 32;
    /// That one rank sends, or receives, in a wave; a single tensor's message may exceed it. Bounds staging
    /// buffers. Source: 256 MiB in flight keep NICs full (docs/executor.md).
    Bytes wave_bytes{std::uint64_t{256} << 20U};
    /// Full parameters that trainers gather at a time; a single tensor may exceed it. Bounds scratch.
    Bytes pack_bytes{std::uint64_t{256} << 20U};
    /// Relayed messages are cut into chunks of no less than this.
    Bytes least_chunk{std::uint64_t{1} << 20U};
    bool operator==(const Settings&) const = default;
};

/// Which waves a plan is run in, and which messages each has: what all ranks must agree on. From it each rank
/// makes its own program without making any other.
class Schedule {
public:
    /// Pre: check_plan proves the plan; the workload and the plan outlive the schedule.
    /// Cost: in transfers, hops, collectives and tensors.
    Schedule(const Plan& plan,
             const Workload& workload,
             std::uint32_t train_gpus,
             const Settings& settings = {});
    ~Schedule();
    Schedule(Schedule&&) noexcept;
    Schedule& operator=(Schedule&&) noexcept;

    /// Of the job; who is lost among them has an empty program.
    [[nodiscard]] std::uint32_t ranks() const noexcept;
    /// Those that take part, ascending.
    [[nodiscard]] const std::vector<std::uint32_t>& members() const noexcept;
    [[nodiscard]] std::uint32_t waves() const noexcept;
    /// Of the plan, the workload and the settings.
    [[nodiscard]] std::uint64_t digest() const noexcept;
    [[nodiscard]] const Workload& workload() const noexcept;
    [[nodiscard]] const Plan& plan() const noexcept;

    /// The program of one rank. Pre: it is below ranks(). Same input, same program.
    [[nodiscard]] RankProgram program_of(std::uint32_t rank) const;

private:
    struct State;
    std::unique_ptr<const State> state_;
};

}  // namespace refit::program
