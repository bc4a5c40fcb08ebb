// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nccl_library.hpp"
#include "refit/exec/control_plane.hpp"
#include "refit/exec/transport.hpp"
#include "refit/program.hpp"

namespace refit::exec::nccl {

/// Whom a rank communicates with.
struct Membership {
    std::uint32_t rank = 0;              ///< This process's, of the job.
    std::vector<std::uint32_t> members;  ///< Ranks that take part, ascending; for NCCL the i-th is number i.
    std::vector<std::uint32_t> domains;  ///< By rank; or none, where none gets a communicator of its own.
};

/// The communicators of one rank: of all ranks and, where it helps, of its NVLink domain, for messages; and
/// one for each group of collectives.
class Communicators {
public:
    explicit Communicators(const Library& library) : library_{library} {}
    ~Communicators() { abort(); }
    Communicators(const Communicators&) = delete;
    Communicators& operator=(const Communicators&) = delete;

    /// Makes them all. Pre: there are none; every member calls it, each with its own program of the same
    /// schedule, and the same members and domains.
    [[nodiscard]] Result<void> make(const program::RankProgram& program,
                                    const Membership& membership,
                                    ControlPlane& control,
                                    std::chrono::milliseconds deadline);
    /// Makes those of fewer members: by ncclCommShrink that of all ranks, and those of groups that have lost
    /// some; those of domains by a split of that; the rest, and all where a rank cannot shrink, anew. Those
    /// before are gone then. Pre: every member calls it and no other, `control` is theirs; where
    /// `after_failure`, revoke was called, else nothing is outstanding.
    [[nodiscard]] Result<void> shrink(const program::RankProgram& program,
                                      const Membership& membership,
                                      bool after_failure,
                                      ControlPlane& control,
                                      std::chrono::milliseconds deadline);
    [[nodiscard]] const Connecting& connecting() const noexcept { return connecting_; }

    [[nodiscard]] ncclComm_t all() const noexcept { return all_; }
    /// A rank's number in that of all.
    [[nodiscard]] int in_all(std::uint32_t rank) const;
    /// Null where this rank's domain has none.
    [[nodiscard]] ncclComm_t domain() const noexcept { return domain_; }
    /// A rank's number in the domain's. Pre: it is of this rank's domain.
    [[nodiscard]] int in_domain(std::uint32_t rank) const;
    [[nodiscard]] ncclComm_t group(std::uint32_t index) const { return groups_.at(index); }
    /// Tells NCCL of memory that messages lie in. All ranks register theirs, or none does.
    [[nodiscard]] Result<void> enroll(std::uint64_t address, std::uint64_t bytes);
    /// Takes that back. Pre: nothing is outstanding.
    void strike_off();
    /// The first error that NCCL found by itself: a peer that is gone.
    [[nodiscard]] Result<void> health() const;
    /// Ends them in peace, after the last wave. Pre: no rank has failed.
    [[nodiscard]] Result<void> finish(std::chrono::milliseconds deadline);
    /// Ends what is outstanding on all of them, so that they can be shrunk; false where this NCCL cannot, and
    /// they are given up.
    bool revoke() noexcept;
    /// Gives them up, whatever they wait for.
    void abort() noexcept;

private:
    using Ranks = std::vector<std::uint32_t>;

    /// What there was before a shrink.
    struct Parents {
        Ranks members;
        ncclComm_t all = nullptr;
        std::vector<std::pair<Ranks, ncclComm_t>> groups;  ///< In the order of the collectives.
        std::vector<ncclComm_t> comms;                     ///< All of them, but those that are kept.
    };

    [[nodiscard]] Result<ncclComm_t> begin(const std::string& id,
                                           int rank,
                                           int ranks,
                                           std::chrono::milliseconds deadline);
    [[nodiscard]] Result<void> split(std::chrono::milliseconds deadline);
    void enter(const program::RankProgram& program, const Membership& membership);
    /// Makes those that are not there.
    [[nodiscard]] Result<void> complete(ControlPlane& control, std::chrono::milliseconds deadline);
    [[nodiscard]] Result<void> make_ids(std::string& ids) const;
    /// Forgets all, and returns them.
    [[nodiscard]] Parents let_go();
    /// Why this rank cannot shrink; empty where it can.
    [[nodiscard]] std::string obstacle(const Parents& parents,
                                       bool after_failure,
                                       std::chrono::milliseconds deadline) const;
    [[nodiscard]] Result<void> derive(Parents& parents,
                                      bool after_failure,
                                      std::chrono::milliseconds deadline);
    [[nodiscard]] Result<ncclComm_t> shrunk(ncclComm_t parent,
                                            const Ranks& before,
                                            bool after_failure,
                                            std::chrono::milliseconds deadline);
    [[nodiscard]] bool is_member(std::uint32_t rank) const;
    [[nodiscard]] std::vector<ncclComm_t> live() const;
    [[nodiscard]] Result<void> retire(const std::vector<ncclComm_t>& comms,
                                      std::chrono::milliseconds deadline) const;
    void abort(const std::vector<ncclComm_t>& comms) const noexcept;

    const Library& library_;
    Membership membership_;
    Ranks of_domain_;  ///< Members of this rank's domain, ascending.
    ncclComm_t all_ = nullptr;
    ncclComm_t domain_ = nullptr;
    std::vector<Ranks> group_ranks_;    ///< The program's groups.
    std::vector<std::uint32_t> order_;  ///< Of those that collectives use.
    std::vector<ncclComm_t> groups_;  ///< By index of the program's groups; null where no collective uses it.
    std::vector<std::pair<ncclComm_t, void*>> enrolled_;
    Connecting connecting_;
};

}  // namespace refit::exec::nccl
