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
#include "refit/program.hpp"

namespace refit::exec::nccl {

/// The communicators of one rank: of all ranks and, where it helps, of its NVLink domain, for messages; and
/// one for each group of collectives.
class Communicators {
public:
    explicit Communicators(const Library& library) : library_{library} {}
    ~Communicators() { abort(); }
    Communicators(const Communicators&) = delete;
    Communicators& operator=(const Communicators&) = delete;

    /// Makes them all. `domains`: by rank, or nothing where none gets its own. Pre: every rank calls it, each
    /// with its own program of the same schedule, and the same domains.
    [[nodiscard]] Result<void> make(const program::RankProgram& program,
                                    std::span<const std::uint32_t> domains,
                                    const ProcessPlace& place,
                                    ControlPlane& control,
                                    std::chrono::milliseconds deadline);
    [[nodiscard]] ncclComm_t all() const noexcept { return all_; }
    /// Null where this rank's domain has none.
    [[nodiscard]] ncclComm_t domain() const noexcept { return domain_; }
    /// A rank's number in the domain's. Pre: it is of this rank's domain.
    [[nodiscard]] int in_domain(std::uint32_t rank) const {
        return static_cast<int>(rank - first_of_domain_);
    }
    [[nodiscard]] ncclComm_t group(std::uint32_t index) const { return groups_.at(index); }
    /// Tells NCCL of memory that messages lie in. All ranks register theirs, or none does.
    [[nodiscard]] Result<void> enroll(std::uint64_t address, std::uint64_t bytes);
    /// The first error that NCCL found by itself: a peer that is gone.
    [[nodiscard]] Result<void> health() const;
    /// Ends them in peace, after the last wave. Pre: no rank has failed.
    [[nodiscard]] Result<void> finish(std::chrono::milliseconds deadline);
    /// Gives them up, whatever they wait for.
    void abort() noexcept;

private:
    [[nodiscard]] Result<ncclComm_t> begin(const std::string& id,
                                           int rank,
                                           int ranks,
                                           std::chrono::milliseconds deadline) const;
    [[nodiscard]] Result<void> split(std::span<const std::uint32_t> domains,
                                     const ProcessPlace& place,
                                     std::chrono::milliseconds deadline);
    [[nodiscard]] std::vector<ncclComm_t> live() const;

    const Library& library_;
    ncclComm_t all_ = nullptr;
    ncclComm_t domain_ = nullptr;
    std::uint32_t first_of_domain_ = 0;
    std::vector<ncclComm_t> groups_;  ///< By index of the program's groups; null where no collective uses it.
    std::vector<std::pair<ncclComm_t, void*>> enrolled_;
};

}  // namespace refit::exec::nccl
