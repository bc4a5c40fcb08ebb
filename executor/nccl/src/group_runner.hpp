// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "communicators.hpp"
#include "refit/exec/message_layout.hpp"
#include "refit/exec/posting.hpp"
#include "refit/exec/staged_program.hpp"
#include "stream_device.hpp"

namespace refit::exec::nccl {

using Clock = std::chrono::steady_clock;

/// What a rank suffers in a run.
struct Suffering {
    std::function<void(std::uint32_t wave)> before_wave;  ///< Called as the wave begins; may be empty.
    std::uint32_t slow_from = program::kNone;             ///< From this wave on all takes ten times as long.
    std::uint32_t corrupt_wave = program::kNone;          ///< In which a bit of what it sends is flipped.
};

/// Runs one rank's groups: each is packed, goes over the wire and is unpacked on streams of its channel, so
/// that while one is on the wire the next is packed and the last unpacked. A group waits only for those that
/// it names (posting.hpp), not for its wave. Whatever waits, waits with a look at the clock and at what NCCL
/// says of the peers.
class GroupRunner {
public:
    /// `is_broken`: whether another rank is gone, as far as others than NCCL know.
    GroupRunner(const Library& library,
                StreamDevice& device,
                const Communicators& comms,
                std::function<bool()> is_broken)
        : library_{library}, device_{device}, comms_{comms}, is_broken_{std::move(is_broken)} {}

    /// Bytes of staging that groups take: two of each channel's largest.
    [[nodiscard]] static std::uint64_t staging_bytes(const program::RankProgram& program,
                                                     std::span<const PostedGroup> groups,
                                                     const RankView& view);
    /// Forgets what was prepared before. Pre: `program` outlives this; `staging` has staging_bytes; the
    /// device is at rest.
    [[nodiscard]] Result<void> prepare(const program::RankProgram& program,
                                       std::vector<PostedGroup> groups,
                                       const RankView& view,
                                       std::uint64_t staging);
    /// One run of all groups. Returns seconds: of all, then spent on the waves of each of `stages`. Errors:
    /// of NCCL and the device; "deadline", naming the first group that was not done.
    [[nodiscard]] Result<std::vector<double>> run(std::size_t stages,
                                                  std::chrono::milliseconds deadline,
                                                  const Suffering& suffering);

    /// Captures the groups of each stage as one CUDA graph. Pre: a run is over, so that NCCL has its
    /// connections; all ranks capture, or none. Returns why it did not work, or nothing; then the next runs
    /// replay the graphs. Errors: of NCCL, after which nothing more can be run.
    [[nodiscard]] Result<std::optional<std::string>> capture(std::chrono::milliseconds deadline);
    /// The next runs post groups themselves again: some rank could not capture.
    void drop_graphs() noexcept { graphs_.clear(); }
    [[nodiscard]] bool has_graphs() const noexcept { return !graphs_.empty(); }

    /// Waits until stream 0 is idle. Errors: as run.
    [[nodiscard]] Result<void> until_idle(Clock::time_point end) const;
    /// Waits until all streams are idle, whatever NCCL and others say. Errors: of the device; "deadline".
    [[nodiscard]] Result<void> until_at_rest(Clock::time_point end) const;

private:
    struct Step {
        PostedGroup group;
        std::vector<StagedMessage> messages;
        LoadedTable packs;
        LoadedTable unpacks;
        std::uint32_t packed = 0;  ///< Marks.
        std::uint32_t moved = 0;
        std::uint32_t done = 0;
    };
    /// Neighbouring groups of one stage.
    struct Graph {
        std::size_t first = 0;
        std::size_t end = 0;
        std::uint32_t graph = 0;
    };

    [[nodiscard]] Result<void> load_steps(const RankView& view, std::uint64_t staging);
    [[nodiscard]] Result<void> begin(std::size_t index, std::size_t first_of_capture);
    [[nodiscard]] Result<void> post(const Step& step, Clock::time_point end);
    [[nodiscard]] Result<void> post(const program::Operation& operation,
                                    const StagedMessage& message,
                                    const Step& step);
    [[nodiscard]] Result<void> broadcast(const program::Operation& operation,
                                         std::byte* memory,
                                         const MessageRange& range,
                                         std::uint32_t root,
                                         const Step& step);
    [[nodiscard]] Result<void> corrupt(const Step& step, Clock::time_point end);
    [[nodiscard]] Result<void> flip(std::uint64_t address);
    [[nodiscard]] Result<void> until(std::uint32_t mark, Clock::time_point end, const Step& step) const;
    [[nodiscard]] Result<void> slow_down(Clock::duration pause,
                                         Clock::time_point end,
                                         const Step& step) const;
    [[nodiscard]] Result<std::vector<double>> run_graphs(std::vector<double> times, Clock::time_point end);
    [[nodiscard]] Result<Graph> capture(std::size_t first, std::size_t end, Clock::time_point deadline);
    [[nodiscard]] std::uint32_t stage_of(const Step& step) const {
        return program_->waves[step.group.wave].stage;
    }
    [[nodiscard]] ncclComm_t comm_of(const PostedGroup& group) const;
    [[nodiscard]] Failure late(const Step& step) const;
    /// What NCCL and others know of the peers.
    [[nodiscard]] Result<void> health() const;

    const Library& library_;
    StreamDevice& device_;
    const Communicators& comms_;
    std::function<bool()> is_broken_;
    mutable Clock::time_point looked_{};  ///< When others were asked last.
    const program::RankProgram* program_ = nullptr;
    std::vector<Step> steps_;
    std::vector<Graph> graphs_;
    std::vector<std::uint32_t> joins_;  ///< Marks by stream, where captures begin (0) and end.
    std::uint64_t spoiled_ = 0;         ///< Address of a byte that was flipped where it lies.
};

}  // namespace refit::exec::nccl
