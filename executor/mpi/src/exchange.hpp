// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "mpi_handles.hpp"
#include "refit/exec/message_layout.hpp"
#include "refit/exec/mpi_transport.hpp"
#include "refit/program.hpp"

namespace refit::exec::mpi {

/// One rank's program as MPI calls, with datatypes, communicators and staging made once.
class Exchange {
public:
    /// Pre: all ranks of `world` call it, each with its program of the same schedule; the program outlives
    /// this.
    Exchange(const program::RankProgram& program,
             const RankView& view,
             MpiWire wire,
             MPI_Comm world,
             const std::function<void()>& has_met);

    /// Posts a wave and completes it. `finished` is called with the index of each operation once it is
    /// complete.
    void run(std::uint32_t wave, const std::function<void(std::size_t)>& finished);

    [[nodiscard]] std::uint64_t staging_bytes() const noexcept { return staging_bytes_; }

private:
    /// An operation made ready.
    struct Ready {
        MessageCopies copies;  ///< To and from staging; none where MPI reads or writes the memory itself.
        TypedBuffer buffer;    ///< Of a message from rank to rank.
        std::uint64_t message = 0;  ///< Of a collective: the address of its bytes.
        std::uint64_t staging = 0;  ///< Offset of its message in staging.
        bool is_staged = false;
        std::vector<int> counts;  ///< Of an all-gather, by place in the group.
        std::vector<int> offsets;
    };
    using ReadyWave = std::vector<Ready>;

    void make_communicators(MPI_Comm world);
    [[nodiscard]] Ready prepare(const program::Operation& operation, std::uint64_t& staged) const;
    void place(const program::Operation& operation, Ready& ready) const;
    void post(const program::Operation& operation, Ready& ready, std::size_t index);
    void post_broadcast(
        std::uint64_t address, const MessageRange& range, int root, MPI_Comm comm, std::size_t index);
    void post_all_gather(const program::Operation& operation, Ready& ready, std::size_t index);

    const program::RankProgram& program_;
    RankView view_;
    MpiWire wire_;
    Communicator messages_;
    std::vector<Communicator> groups_;
    std::vector<ReadyWave> waves_;
    std::uint64_t staging_bytes_ = 0;
    std::unique_ptr<std::byte[]> staging_;
    std::vector<MPI_Request> requests_;
    std::vector<std::size_t> operation_;  ///< By request.
};

}  // namespace refit::exec::mpi
