// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "mpi_handles.hpp"
#include "refit/exec/message_layout.hpp"
#include "refit/exec/readiness.hpp"
#include "refit/program.hpp"

namespace refit::exec::mpi {

/// How messages of strided boxes travel through MPI.
enum class MpiWire : std::uint8_t {
    kDatatypes,  ///< MPI walks the box, in fragments that stay in the cache: measured 1.6 times as fast on
                 ///< one host.
    kPacked,     ///< Copied into a message first, unless it lies as one anyway.
};

/// What a rank stages messages in, beside its program's arenas. Unit: byte.
[[nodiscard]] std::uint64_t staging_bytes(const program::RankProgram& program, MpiWire wire);

/// One rank's program as MPI calls, with datatypes, communicators and staging made once.
class Exchange {
public:
    /// Pre: all ranks of `world` call it, each with its program of the same schedule; the program outlives
    /// this. `members`: the ranks of the job that the ranks of `world` are, ascending.
    Exchange(const program::RankProgram& program,
             const std::vector<std::uint32_t>& members,
             const RankView& view,
             MpiWire wire,
             MPI_Comm world,
             const std::function<void()>& has_met);

    /// What a caller is told while the program runs.
    class Observer {
    public:
        Observer() = default;
        Observer(const Observer&) = delete;
        Observer& operator=(const Observer&) = delete;
        virtual ~Observer() = default;
        /// An operation is about to be posted. True: with a wrong first byte in what it gives.
        virtual bool begins(const Place& place) = 0;
        /// An operation is complete.
        virtual void ends(const Place& place) = 0;
        /// A wave is complete, and all before it.
        virtual void ends_wave(std::uint32_t wave) = 0;
    };

    /// Runs all waves.
    void run(Observer& observer);

private:
    /// An operation made ready.
    struct Ready {
        MessageCopies copies;  ///< To and from staging; none where MPI reads or writes the memory itself.
        TypedBuffer buffer;    ///< Of a message from rank to rank.
        std::uint64_t message = 0;  ///< Of a collective: the address of its bytes.
        std::uint64_t staging = 0;  ///< Offset of its message in staging.
        bool is_staged = false;
        std::uint32_t requests = 0;  ///< Posted and not complete.
        std::vector<int> counts;  ///< Of an all-gather, by place in the group.
        std::vector<int> offsets;
    };
    using ReadyWave = std::vector<Ready>;

    void make_communicators(MPI_Comm world);
    /// Number of a rank of the job in the communicator of messages.
    [[nodiscard]] int process_of(std::uint32_t rank) const;
    [[nodiscard]] Ready prepare(const program::Operation& operation, std::uint64_t& staged) const;
    void place(const program::Operation& operation, Ready& ready) const;
    /// Makes the first byte of what the operation gives another one: a send's in a copy, since others may send the same
    /// memory.
    void spoil(const program::Operation& operation, const Ready& ready);
    /// Completes what is complete by now, at least one request.
    void complete(Observer& observer);
    void post(const program::Operation& operation, const TypedBuffer& buffer, Ready& ready, const Place& place);
    void post_broadcast(
        std::uint64_t address, const MessageRange& range, int root, MPI_Comm comm, const Place& place);
    void post_all_gather(const program::Operation& operation, Ready& ready, const Place& place);
    /// Where the next call to MPI puts its request.
    MPI_Request& request_of(const Place& place);

    const program::RankProgram& program_;
    const std::vector<std::uint32_t>& members_;
    RankView view_;
    MpiWire wire_;
    Communicator messages_;
    std::vector<Communicator> groups_;
    std::vector<ReadyWave> waves_;
    std::unique_ptr<std::byte[]> staging_;
    Readiness readiness_;
    std::unique_ptr<std::byte[]> spoiled_;  ///< A message with a wrong byte.
    TypedBuffer spoiled_buffer_;
    std::vector<MPI_Request> requests_;  ///< MPI_REQUEST_NULL where the place is free.
    std::vector<Place> owners_;          ///< By request.
    std::vector<int> free_;              ///< Places in `requests_`.
    std::vector<int> done_;
};

}  // namespace refit::exec::mpi
