// SPDX-License-Identifier: Apache-2.0
#include "exchange.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

namespace refit::exec::mpi {
namespace {

using program::Operation;
using program::OperationKind;

constexpr std::uint64_t kAlignment = 64;
/// Of one call: MPI counts in ints.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
/// Four waves of at most 256 MiB bound what is staged; 64 messages keep a rank busy.
constexpr Ahead kAhead{4, 64};

std::byte* pointer(std::uint64_t address) {
    return reinterpret_cast<std::byte*>(
        address);  // NOLINT(performance-no-int-to-ptr): copies keep addresses as numbers
}

void run_all(const std::vector<StridedCopy>& copies) {
    for (const StridedCopy& copy : copies) {
        StridedCopy at_zero = copy;
        at_zero.source = 0;
        at_zero.destination = 0;
        run_copy(at_zero, pointer(copy.source), pointer(copy.destination), false);
    }
}

/// The copies of a send or a receive in message order, where MPI can walk them.
std::optional<std::vector<StridedCopy>> walk_of(const Operation& operation, const MessageCopies& copies) {
    const bool gives = operation.kind == OperationKind::kSend;
    return in_message_order(gives ? copies.gives : copies.takes,
                            gives ? MessageSide::kDestination : MessageSide::kSource,
                            0,
                            {0, operation.bytes});
}

/// Where all of a message lies in memory as one stretch, if it does. For a broadcast this is the buffer at
/// either end.
std::optional<std::uint64_t> whole_message(const Operation& operation, const MessageCopies& copies) {
    const bool gives = operation.kind == OperationKind::kSend || operation.place == 0;
    const auto side = gives ? MessageSide::kDestination : MessageSide::kSource;
    const auto ordered = in_message_order(gives ? copies.gives : copies.takes, side, 0, {0, operation.bytes});
    return ordered ? contiguous_memory(*ordered, side) : std::nullopt;
}

std::uint64_t aligned(std::uint64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Waves whose messages have memory of their own.
std::uint64_t slots_of(const program::RankProgram& program) {
    return std::min<std::uint64_t>(kAhead.waves, program.waves.size());
}

/// How a message lies in memory.
struct Way {
    std::optional<std::uint64_t> whole;            ///< As one stretch, from this address on.
    std::optional<std::vector<StridedCopy>> walk;  ///< As MPI can walk it.
    [[nodiscard]] bool is_staged() const { return !whole && !walk; }
};

Way way_of(const Operation& operation, const RankView& view, MpiWire wire) {
    const MessageCopies copies = copies_of(operation, view, 0);
    Way way;
    if (operation.kind != OperationKind::kAllGather) {
        way.whole = whole_message(operation, copies);
    }
    if (!way.whole && wire == MpiWire::kDatatypes && !operation.is_collective()) {
        way.walk = walk_of(operation, copies);
    }
    return way;
}

}  // namespace

std::uint64_t staging_bytes(const program::RankProgram& program, MpiWire wire) {
    RankView view{program.regions, {}};
    for (std::size_t arena = 0; arena < program::kArenas; ++arena) {
        view.arenas[arena] = (arena + 1) << 48U;  // Apart, as in memory.
    }
    std::uint64_t most = 0;
    for (const program::Wave& wave : program.waves) {
        std::uint64_t staged = 0;
        for (const Operation& operation : wave.operations) {
            const bool is_staged = operation.bytes > 0 && way_of(operation, view, wire).is_staged();
            staged += is_staged ? aligned(operation.bytes) : 0;
        }
        most = std::max(most, staged);
    }
    return most * slots_of(program);
}

Exchange::Exchange(const program::RankProgram& program,
                   const std::vector<std::uint32_t>& members,
                   const RankView& view,
                   MpiWire wire,
                   MPI_Comm world,
                   const std::function<void()>& has_met)
    : program_{program}, members_{members}, view_{view}, wire_{wire}, readiness_{program, kAhead} {
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(world, &copy);
    messages_ = Communicator{copy};
    make_communicators(world);
    has_met();
    std::uint64_t most_staged = 0;
    for (const program::Wave& wave : program.waves) {
        std::uint64_t staged = 0;
        ReadyWave& ready = waves_.emplace_back();
        for (const Operation& operation : wave.operations) {
            ready.push_back(prepare(operation, staged));
        }
        most_staged = std::max(most_staged, staged);
    }
    const auto slots = slots_of(program);
    staging_ = std::make_unique_for_overwrite<std::byte[]>(most_staged * slots + kAlignment);
    for (std::size_t wave = 0; wave < waves_.size(); ++wave) {
        for (std::size_t index = 0; index < waves_[wave].size(); ++index) {
            Ready& ready = waves_[wave][index];
            ready.staging += wave % slots * most_staged;
            place(program.waves[wave].operations[index], ready);
        }
    }
}

void Exchange::make_communicators(MPI_Comm world) {
    groups_.resize(program_.groups.size());
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Comm_group(world, &all);
    // In the order of the collectives, which is the same on all ranks: else two could wait for each other.
    for (const program::Wave& wave : program_.waves) {
        for (const Operation& operation : wave.operations) {
            if (!operation.is_collective() || groups_[operation.group].get() != MPI_COMM_NULL) {
                continue;
            }
            const std::vector<std::uint32_t>& members = program_.groups[operation.group];
            std::vector<int> ranks;
            std::ranges::transform(
                members, std::back_inserter(ranks), [this](std::uint32_t rank) { return process_of(rank); });
            MPI_Group group = MPI_GROUP_NULL;
            MPI_Comm comm = MPI_COMM_NULL;
            MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &group);
            MPI_Comm_create_group(world, group, 0, &comm);
            MPI_Group_free(&group);
            groups_[operation.group] = Communicator{comm};
        }
    }
    MPI_Group_free(&all);
}

int Exchange::process_of(std::uint32_t rank) const {
    return static_cast<int>(std::ranges::lower_bound(members_, rank) - members_.begin());
}

Exchange::Ready Exchange::prepare(const Operation& operation, std::uint64_t& staged) const {
    Ready ready;
    if (operation.bytes == 0) {
        return ready;
    }
    const Way way = way_of(operation, view_, wire_);
    if (way.whole) {
        ready.message = *way.whole;
        if (!operation.is_collective()) {
            ready.buffer = bytes_at(*way.whole, operation.bytes);
        }
        return ready;
    }
    if (way.walk) {
        const bool gives = operation.kind == OperationKind::kSend;
        ready.buffer = memory_of(*way.walk, gives ? MemorySide::kSource : MemorySide::kDestination);
        return ready;
    }
    ready.is_staged = true;
    ready.staging = staged;
    staged += aligned(operation.bytes);
    return ready;
}

void Exchange::place(const Operation& operation, Ready& ready) const {
    if (operation.kind == OperationKind::kAllGather && operation.bytes <= std::numeric_limits<int>::max()) {
        for (std::uint32_t member = 0; member < program_.groups[operation.group].size(); ++member) {
            const MessageRange range = given_by(operation, member);
            ready.counts.push_back(static_cast<int>(range.end - range.begin));
            ready.offsets.push_back(static_cast<int>(range.begin));
        }
    }
    if (!ready.is_staged) {
        return;
    }
    const auto begin = reinterpret_cast<std::uint64_t>(staging_.get());
    ready.message = (begin + kAlignment - 1) / kAlignment * kAlignment + ready.staging;
    ready.copies = copies_of(operation, view_, ready.message);
    if (!operation.is_collective()) {
        ready.buffer = bytes_at(ready.message, operation.bytes);
    }
}

void Exchange::run(Observer& observer) {
    readiness_.restart();
    std::uint32_t wave = 0;
    while (true) {
        for (auto place = readiness_.next(); place; place = readiness_.next()) {
            const Operation& operation = program_.waves[place->wave].operations[place->index];
            const bool is_spoiled = observer.begins(*place);
            Ready& ready = waves_[place->wave][place->index];
            run_all(ready.copies.gives);
            if (is_spoiled) {
                spoil(operation, ready);
            }
            const bool is_copy = is_spoiled && operation.kind == OperationKind::kSend;
            post(operation, is_copy ? spoiled_buffer_ : ready.buffer, ready, *place);
        }
        for (; wave < readiness_.waves_done(); ++wave) {
            observer.ends_wave(wave);
        }
        if (readiness_.is_done()) {
            return;
        }
        complete(observer);
    }
}

void Exchange::spoil(const Operation& operation, const Ready& ready) {
    if (operation.kind != OperationKind::kSend) {
        *pointer(ready.message + given_by(operation, operation.place).begin) ^= std::byte{1};
        return;
    }
    spoiled_ = std::make_unique_for_overwrite<std::byte[]>(operation.bytes);
    const auto address = reinterpret_cast<std::uint64_t>(spoiled_.get());
    run_all(copies_of(operation, view_, address).gives);
    spoiled_[0] ^= std::byte{1};
    spoiled_buffer_ = bytes_at(address, operation.bytes);
}

void Exchange::complete(Observer& observer) {
    int count = 0;
    done_.resize(requests_.size());
    MPI_Waitsome(
        static_cast<int>(requests_.size()), requests_.data(), &count, done_.data(), MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; ++i) {
        const int request = done_[static_cast<std::size_t>(i)];
        const Place place = owners_[static_cast<std::size_t>(request)];
        free_.push_back(request);
        Ready& ready = waves_[place.wave][place.index];
        if (--ready.requests == 0) {
            run_all(ready.copies.takes);
            observer.ends(place);
            readiness_.finish(place);
        }
    }
}

MPI_Request& Exchange::request_of(const Place& place) {
    if (free_.empty()) {
        free_.push_back(static_cast<int>(requests_.size()));
        requests_.push_back(MPI_REQUEST_NULL);
        owners_.emplace_back();
    }
    const auto request = static_cast<std::size_t>(free_.back());
    free_.pop_back();
    owners_[request] = place;
    ++waves_[place.wave][place.index].requests;
    return requests_[request];
}

void Exchange::post(const Operation& operation, const TypedBuffer& buffer, Ready& ready, const Place& place) {
    const int peer = operation.is_collective() ? 0 : process_of(operation.peer);
    // Of two ranks' messages with one tag, MPI keeps the order.
    const auto tag = static_cast<int>(operation.lane);
    void* const address = buffer.address;
    switch (operation.kind) {
        case OperationKind::kReceive:
            MPI_Irecv(address, 1, buffer.type.get(), peer, tag, messages_.get(), &request_of(place));
            break;
        case OperationKind::kSend:
            MPI_Isend(address, 1, buffer.type.get(), peer, tag, messages_.get(), &request_of(place));
            break;
        case OperationKind::kBroadcast:
            post_broadcast(ready.message, {0, operation.bytes}, 0, groups_[operation.group].get(), place);
            break;
        case OperationKind::kAllGather:
            post_all_gather(operation, ready, place);
            break;
    }
}

void Exchange::post_broadcast(
    std::uint64_t address, const MessageRange& range, int root, MPI_Comm comm, const Place& place) {
    for (std::uint64_t begin = range.begin; begin < range.end; begin += kMostBytes) {
        const auto count = static_cast<int>(std::min(kMostBytes, range.end - begin));
        MPI_Ibcast(pointer(address + begin), count, MPI_BYTE, root, comm, &request_of(place));
    }
}

void Exchange::post_all_gather(const Operation& operation, Ready& ready, const Place& place) {
    MPI_Comm comm = groups_[operation.group].get();
    if (!ready.counts.empty()) {
        MPI_Iallgatherv(MPI_IN_PLACE,
                        0,
                        MPI_BYTE,
                        pointer(ready.message),
                        ready.counts.data(),
                        ready.offsets.data(),
                        MPI_BYTE,
                        comm,
                        &request_of(place));
        return;
    }
    for (std::uint32_t member = 0; member < program_.groups[operation.group].size(); ++member) {
        post_broadcast(ready.message, given_by(operation, member), static_cast<int>(member), comm, place);
    }
}

}  // namespace refit::exec::mpi
