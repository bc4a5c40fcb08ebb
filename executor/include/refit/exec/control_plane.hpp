// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "refit/result.hpp"

namespace refit::exec {

/// This process among those of its job.
struct ProcessPlace {
    std::uint32_t rank = 0;
    std::uint32_t ranks = 1;
    std::uint32_t local_rank = 0;  ///< Among those of its machine: which GPU it takes.
};

/// What a launcher says in its variables: REFIT_RANK, REFIT_RANKS and REFIT_LOCAL_RANK, or those of Open
/// MPI's mpirun, or of Slurm's srun. `lookup` gives a variable, or null. Errors: kInvalidInput where none or
/// not all are set.
[[nodiscard]] Result<ProcessPlace> process_place(const std::function<const char*(const char*)>& lookup);

/// How the processes of a job find the first of them.
struct Rendezvous {
    /// "tcp://HOST:PORT", where the first listens; "file://PATH", on a file system of all, which the first
    /// writes; or nothing, where `share` tells them.
    std::string address;
    /// Gives all processes the text of the first, for example over MPI; may be empty.
    std::function<std::string(const std::string&)> share;
};

/// Small texts between all processes of a job, with deadlines: TCP connections from all others to the first.
class ControlPlane {
public:
    virtual ~ControlPlane() = default;

    /// What each process gave, by place. All processes call it, and all get the same, or the same fault:
    /// "rank-died", "rank-stalled" naming who is missing or gave up.
    [[nodiscard]] virtual Result<std::vector<std::string>> exchange(const std::string& mine,
                                                                    std::chrono::milliseconds deadline) = 0;

    /// Whether another process is gone or has given up, so that what this one waits for may never come.
    /// Looks, and does not wait. Pre: no exchange is going on.
    [[nodiscard]] virtual bool is_broken() = 0;
    /// After a fault, in all processes that are left: the ranks that are gone, or that say nothing within
    /// `patience`. They are heard no more; the others are numbered without gaps from here on. Errors: as
    /// exchange, where the first is gone.
    [[nodiscard]] virtual Result<std::vector<std::uint32_t>> muster(std::chrono::milliseconds patience) = 0;
    /// Goes on with these ranks, ascending; called by all of them. Pre: the first is among them.
    virtual void keep(std::span<const std::uint32_t> ranks) = 0;
};

/// `ranks`: what faults call the processes, ascending; their places where there are not as many. Errors:
/// kInvalidInput, "rendezvous"; "rank-stalled" naming those who did not come.
[[nodiscard]] Result<std::unique_ptr<ControlPlane>> join_job(const ProcessPlace& place,
                                                             const Rendezvous& rendezvous,
                                                             std::chrono::milliseconds deadline,
                                                             std::vector<std::uint32_t> ranks = {});

}  // namespace refit::exec
