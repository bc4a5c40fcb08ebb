// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "refit/exec/injection.hpp"
#include "refit/exec/tensor_source.hpp"
#include "refit/program_schedule.hpp"
#include "refit/result.hpp"
#include "refit/units.hpp"

namespace refit::exec {

/// What a transport carries out.
struct Job {
    const program::Schedule* schedule = nullptr;  ///< Outlives the transport.
    std::chrono::milliseconds deadline{30'000};   ///< For each call that waits for other ranks.
    std::uint32_t threads = 0;                    ///< Of one process; 0: as many as the machine has.
    bool streams = false;               ///< Stores that bypass the caches, where the machine has them.
    bool packs = false;                 ///< `mpi`: strided messages are packed first, not walked by MPI.
    bool graphs = false;                ///< `cuda`, `nccl`: from the second run on, one CUDA graph for each stage.
    bool one_communicator = false;      ///< `nccl`: none of its own for each NVLink domain.
    bool shrinks = false;               ///< `nccl`: makes communicators out of those of more ranks, where there are any.
    std::vector<std::uint32_t> domain_starts;  ///< The first rank of each NVLink domain, ascending; may be empty.
    std::vector<Injection> injections;  ///< For tests of how a run fails.
    const TensorSource* data =
        nullptr;  ///< What to move, in place of made-up values; outlives the transport.
};

/// How long one rank took. Unit: s, from the common start of the iteration.
struct RankTimes {
    std::uint32_t rank = 0;
    Seconds seconds;
    std::vector<Seconds> stages;  ///< Spent in the waves of each stage of the plan.
};

/// One run of all waves.
struct Iteration {
    Seconds seconds;               ///< From the common start until the last rank is done.
    std::vector<RankTimes> ranks;  ///< Ascending.
};

/// What a rank leaves when it is done; a run succeeds only with one of every rank.
struct RankRecord {
    std::uint32_t rank = 0;
    std::uint64_t digest = 0;    ///< Of the program that it ran.
    std::uint64_t elements = 0;  ///< Compared in its destinations.
    std::uint64_t checksum = 0;  ///< Of its destination arena; 0 where it has none.
    std::uint64_t sent = 0;      ///< Bytes that it gave others in one run.
    std::uint64_t received = 0;  ///< Bytes that it took in one run.
};

/// The first destination element that is not what it should be.
struct Mismatch {
    std::uint32_t rank = 0;
    program::Tensor tensor;
    std::uint64_t element = 0;   ///< Row-major index in the logical tensor.
    std::uint64_t expected = 0;  ///< Bits of the element.
    std::uint64_t found = 0;
    std::uint32_t wave = program::kNone;       ///< Which should have written it; kNone: none does.
    std::uint32_t operation = program::kNone;  ///< Its id.
    std::uint32_t giver = program::kNone;      ///< The rank that should have sent it.
};

struct Verification {
    std::uint64_t elements = 0;        ///< Compared, over all ranks.
    std::optional<Mismatch> mismatch;  ///< Of the lowest rank, its first tensor, the first element.
    std::vector<RankRecord> records;   ///< Ascending.
};

/// How a transport's communicators came to be, as one process saw it.
struct Connecting {
    Seconds seconds;          ///< From the first call until all ranks have theirs.
    std::uint32_t made = 0;   ///< Anew.
    std::uint32_t shrunk = 0; ///< Out of those of more ranks, or kept from before.
    std::string note;         ///< Why none was shrunk, where that was asked for.
};

/// Moves bytes as programs say. Every call returns within the job's deadline (and a little) or fails; a fault
/// names the rank, the wave and what it waited for. Rules of faults: "rank-died", "rank-stalled",
/// "out-of-memory", "other-plan", "other-version", "deadline", "transport". After a failure only
/// `old_weights_stand`, `failed_ranks` and the destructor may be called; and `prepare`, where `can_go_on`.
///
/// Calls in order: prepare; any number of [fill, run]; verify; flip.
class Transport {
public:
    virtual ~Transport() = default;

    /// "host", "mpi", "cuda", "nccl".
    [[nodiscard]] virtual std::string_view name() const noexcept = 0;
    /// Whether this process tells the user of the outcome: one of a job does.
    [[nodiscard]] virtual bool reports() const noexcept { return true; }
    /// The machine, for the report: "2 cores, 24 GiB".
    [[nodiscard]] virtual std::string machine() const = 0;

    /// Makes the programs of this process's ranks, agrees with all others on version and digest, and
    /// allocates: sources, two destinations each, scratch, staging. Refuses before it allocates where memory
    /// would not do: "out-of-memory", with how much is needed, and how much there is.
    [[nodiscard]] virtual Result<void> prepare(const Job& job) = 0;
    /// Writes the values of `version` (refit/exec/values.hpp) to the sources, and what no version has to the
    /// shadow destinations and scratch.
    [[nodiscard]] virtual Result<void> fill(std::uint64_t version) = 0;
    /// Runs all waves, from the sources into the shadow destinations. In the process that reports: of all
    /// ranks.
    [[nodiscard]] virtual Result<Iteration> run() = 0;
    /// Compares every element of the shadow destinations with the values of `version`. In each process: of all ranks.
    [[nodiscard]] virtual Result<Verification> verify(std::uint64_t version) = 0;
    /// Makes the shadow destinations the weights that are served.
    [[nodiscard]] virtual Result<void> flip() = 0;
    /// Whether the weights that are served are still, to the byte, those from before the refit. Called by all processes
    /// of a job, or by none.
    [[nodiscard]] virtual bool old_weights_stand() const = 0;
    /// After a failure: the ranks that it is known to be of, without which others might go on. Ascending.
    [[nodiscard]] virtual std::vector<std::uint32_t> failed_ranks() const { return {}; }
    /// The rank that this process is, where it is one.
    [[nodiscard]] virtual std::optional<std::uint32_t> own_rank() const { return std::nullopt; }
    /// Whether those who take part in a smaller job may prepare it with this transport, all of them, while the others
    /// leave: after a failure without failed_ranks, or once prepared.
    [[nodiscard]] virtual bool can_go_on() const { return false; }
    /// Of the last prepare; nothing where there are no communicators.
    [[nodiscard]] virtual std::optional<Connecting> connecting() const { return std::nullopt; }
};

}  // namespace refit::exec
