// SPDX-License-Identifier: Apache-2.0
#include "fake_nccl.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "async_device.hpp"
#include "fake_nccl_world.hpp"

namespace refit::testing_support::fake {
namespace {

using refit::testing_support::AsyncDevice;
using refit::testing_support::HostDevice;

struct Call {
    ncclComm_t comm = nullptr;
    int peer = 0;  ///< Or -1 for a broadcast's root to all.
    bool gives = false;
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    cudaStream_t stream = nullptr;
};
thread_local int depth = 0;
thread_local std::vector<Call> calls;
thread_local bool is_gone = false;
thread_local bool is_silent = false;

ncclResult_t start_group() {
    ++depth;
    return ncclSuccess;
}

struct End {
    int peer = 0;
    bool gives = false;
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    bool is_registered = false;
};

/// All messages of a group and communicator: what this rank gives is there for all takers, then it takes in
/// turn.
void run_kernel(Clique& clique, int rank, const std::vector<End>& ends) {
    std::vector<std::shared_ptr<Message>> given;
    std::unique_lock lock{world().mutex};
    const auto is_over = [&] { return clique.is_aborted || clique.stopped.contains(rank); };
    for (const End& end : ends) {
        if (end.gives) {
            given.push_back(
                std::make_shared<Message>(Message{end.memory, end.bytes, end.is_registered, false, false}));
            clique.ways[{rank, end.peer}].push_back(given.back());
        }
    }
    world().changed.notify_all();
    for (const End& end : ends) {
        if (end.gives) {
            continue;
        }
        auto& way = clique.ways[{end.peer, rank}];
        world().changed.wait(lock, [&] { return is_over() || !way.empty(); });
        if (is_over()) {
            break;
        }
        const auto taken = way.front();
        Message& message = *taken;
        message.is_being_taken = true;
        way.pop_front();
        if (message.bytes != end.bytes) {
            wrong("a message of " + std::to_string(message.bytes) + " bytes meets one of " +
                  std::to_string(end.bytes));
        }
        if (message.is_registered != end.is_registered) {
            wrong("memory is registered on one side alone");
        }
        lock.unlock();
        std::memcpy(end.memory, message.from, std::min(message.bytes, end.bytes));
        lock.lock();
        message.is_taken = true;
        world().changed.notify_all();
    }
    world().changed.wait(lock, [&] {
        return std::ranges::all_of(
            given, [&](const auto& one) { return one->is_taken || (is_over() && !one->is_being_taken); });
    });
    for (auto& [ends_of, way] : clique.ways) {
        std::erase_if(way, [&](const auto& one) { return std::ranges::find(given, one) != given.end(); });
    }
}

ncclResult_t end_group() {
    if (--depth > 0) {
        return ncclSuccess;
    }
    auto mine = std::move(calls);
    calls.clear();
    std::vector<ncclComm_t> comms;
    for (const Call& call : mine) {
        if (std::ranges::find(comms, call.comm) == comms.end()) {
            comms.push_back(call.comm);
        }
    }
    for (ncclComm_t comm : comms) {
        std::vector<End> ends;
        cudaStream_t stream = nullptr;
        {
            const std::lock_guard lock{world().mutex};
            if (comm->is_in_progress) {
                wrong("a call on a communicator that has not settled");
            }
            comm->is_in_progress = true;
            if (world().groups_left == 0) {
                comm->has_failed = true;
                continue;
            }
            world().groups_left -= world().groups_left > 0 ? 1 : 0;
            for (const Call& call : mine) {
                if (call.comm != comm) {
                    continue;
                }
                stream = call.stream;
                const bool is_registered = comm->has(call.memory, call.bytes);
                for (int peer = 0; call.peer < 0 && peer < comm->clique->size; ++peer) {
                    if (peer != comm->rank) {
                        ends.push_back({peer, true, call.memory, call.bytes, is_registered});
                    }
                }
                if (call.peer >= 0) {
                    ends.push_back({call.peer, call.gives, call.memory, call.bytes, is_registered});
                }
            }
        }
        auto& device = dynamic_cast<AsyncDevice&>(HostDevice::device_of(stream));
        // In a graph, kernels have no turns of their own: one follows the other.
        const auto turn = HostDevice::is_capturing(stream) ? std::nullopt : std::optional{device.take_turn()};
        const bool is_captured = HostDevice::is_capturing(stream);
        const auto count = [outstanding = comm->outstanding](int change) {
            const std::lock_guard lock{world().mutex};
            *outstanding += change;
        };
        count(is_captured ? 0 : 1);
        HostDevice::begin_on(
            stream, [clique = comm->clique, rank = comm->rank, ends, &device, turn, is_captured, count] {
                count(is_captured ? 1 : 0);
                auto& counts = refit::testing_support::nccl_counts();
                ++counts.kernels;
                counts.domain_kernels += clique->is_split ? 1 : 0;
                if (turn) {
                    device.await_turn(*turn);
                }
                run_kernel(*clique, rank, ends);
                if (turn) {
                    device.end_turn();
                }
                count(-1);
                world().changed.notify_all();
            });
    }
    return ncclInProgress;
}

ncclResult_t add(const Call& call) {
    start_group();
    calls.push_back(call);
    return end_group() == ncclInProgress ? ncclInProgress : ncclSuccess;
}

ncclResult_t get_version(int* version) {
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}
ncclResult_t get_unique_id(ncclUniqueId* id) {
    const std::lock_guard lock{world().mutex};
    std::memset(id->internal, 0, sizeof(id->internal));
    const auto number = ++world().ids;
    std::memcpy(id->internal, &number, sizeof(number));
    return ncclSuccess;
}

ncclComm_t joined(const std::string& id, int size, int rank, bool is_split) {
    auto& clique = world().cliques[id];
    if (!clique) {
        clique = std::make_shared<Clique>();
        clique->size = size;
        clique->is_split = is_split;
    }
    ++clique->joined;
    ++refit::testing_support::nccl_counts().communicators;
    auto* comm = new ncclComm;
    comm->clique = clique;
    comm->id = id;
    comm->rank = rank;
    return comm;
}

ncclResult_t init(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
    const std::lock_guard lock{world().mutex};
    if (config == nullptr || config->blocking != 0) {
        wrong("a communicator that blocks");
    }
    *comm = joined(std::string{id.internal, sizeof(id.internal)}, size, rank, false);
    return ncclInProgress;
}

ncclResult_t split(ncclComm_t comm, int color, int key, ncclComm_t* child, ncclConfig_t* config) {
    const std::lock_guard lock{world().mutex};
    if (comm->is_in_progress || config == nullptr || config->blocking != 0 || key != comm->rank) {
        wrong("a split that blocks, or of a communicator that has not settled");
    }
    auto& colors = comm->clique->colors;
    colors.resize(std::max(colors.size(), comm->splits + 1));
    colors[comm->splits++][comm->rank] = color;
    comm->child = child;
    comm->is_in_progress = true;
    ++refit::testing_support::nccl_counts().splits;
    return ncclInProgress;
}

/// Of a revoked communicator nobody hears any more.
bool is_broken(const ncclComm& comm) {
    return comm.is_revoked ? comm.was_broken
                           : comm.clique->is_aborted || (comm.has_failed && !world().fails_silently);
}

ncclResult_t shrink(
    ncclComm_t comm, int* excluded, int count, ncclComm_t* child, ncclConfig_t* config, int flags) {
    std::unique_lock lock{world().mutex};
    Clique& clique = *comm->clique;
    const std::vector<int> list{excluded, excluded + std::max(count, 0)};
    const std::set<int> distinct{list.begin(), list.end()};
    if (list.empty() || distinct.size() != list.size() || *distinct.begin() < 0 ||
        *distinct.rbegin() >= clique.size || distinct.contains(comm->rank)) {
        wrong("a shrink without whom it leaves out, or by one of these");
        return ncclInvalidArgument;
    }
    if (comm->is_in_progress || config == nullptr || config->blocking != 0) {
        wrong("a shrink that blocks, or of a communicator that has not settled");
    }
    if (is_broken(*comm)) {
        return ncclRemoteError;
    }
    if (flags == exec::nccl::kShrinkAbort) {
        const bool is_new = clique.stopped.insert(comm->rank).second;
        world().changed.notify_all();
        world().changed.wait(lock, [&] { return *comm->outstanding == 0; });
        if (is_new) {
            clique.stopped.erase(comm->rank);
        }
    } else if (*comm->outstanding > 0) {
        wrong("a shrink beside what is outstanding");
    }
    clique.exclusions.resize(std::max(clique.exclusions.size(), comm->shrinks + 1));
    auto& exclusions = clique.exclusions[comm->shrinks++];
    exclusions[comm->rank] = list;
    if (exclusions.begin()->second != list) {
        wrong("ranks that leave out others in one shrink");
    }
    comm->child = child;
    comm->is_shrinking = true;
    comm->is_in_progress = true;
    ++refit::testing_support::nccl_counts().shrinks;
    return ncclInProgress;
}

ncclResult_t revoke(ncclComm_t comm, int flags) {
    {
        const std::lock_guard lock{world().mutex};
        if (comm->is_revoked || flags != 0) {
            wrong("a communicator is revoked twice");
        }
        comm->was_broken = is_broken(*comm);
        comm->clique->stopped.insert(comm->rank);
        comm->is_revoked = true;
        comm->is_in_progress = true;
    }
    world().changed.notify_all();
    return ncclInProgress;
}

/// The one that is left of it, once all who stay have called.
void give_shrunk(ncclComm& comm) {
    const auto& exclusions = comm.clique->exclusions[comm.shrinks - 1];
    const auto& own = exclusions.at(comm.rank);
    const auto size = comm.clique->size - static_cast<int>(own.size());
    if (static_cast<int>(exclusions.size()) == size) {
        const auto below = std::ranges::count_if(own, [&](int rank) { return rank < comm.rank; });
        *comm.child = joined(comm.id + "/less/" + std::to_string(comm.shrinks),
                             size,
                             comm.rank - static_cast<int>(below),
                             false);
        comm.child = nullptr;
        comm.is_shrinking = false;
    }
}

/// What was called is done by the second look at the state, once all have called it.
ncclResult_t get_async_error(ncclComm_t comm, ncclResult_t* state) {
    const std::lock_guard lock{world().mutex};
    Clique& clique = *comm->clique;
    *state = ncclInProgress;
    if (is_broken(*comm)) {
        *state = ncclRemoteError;
    } else if (comm->is_revoked && *comm->outstanding > 0) {
        *state = ncclInProgress;
    } else if (comm->is_shrinking) {
        give_shrunk(*comm);
    } else if (clique.joined == clique.size && comm->child == nullptr &&
               (comm->is_revoked || !comm->has_failed)) {
        *state = std::exchange(comm->is_in_progress, false) ? ncclInProgress : ncclSuccess;
    } else if (comm->child != nullptr &&
               clique.colors[comm->splits - 1].size() == static_cast<std::size_t>(clique.size)) {
        const auto& colors = clique.colors[comm->splits - 1];
        const int own = colors.at(comm->rank);
        int size = 0;
        int rank = 0;
        for (const auto& [member, color] : colors) {
            size += color == own ? 1 : 0;
            rank += color == own && member < comm->rank ? 1 : 0;
        }
        *comm->child = own == NCCL_SPLIT_NOCOLOR
                           ? nullptr
                           : joined(comm->id + "/" + std::to_string(comm->splits) + "/" + std::to_string(own),
                                    size,
                                    rank,
                                    true);
        comm->child = nullptr;
    }
    return ncclSuccess;
}

ncclResult_t finalize(ncclComm_t comm) {
    const std::lock_guard lock{world().mutex};
    if (is_gone) {
        return ncclSystemError;
    }
    if (comm->is_revoked) {
        wrong("a revoked communicator is finalized");
    }
    comm->is_in_progress = true;
    return ncclInProgress;
}
ncclResult_t destroy(ncclComm_t comm) {
    {
        const std::lock_guard lock{world().mutex};
        if (comm->is_in_progress) {
            wrong("a communicator is destroyed that has not settled");
        }
        if (!comm->registered.empty()) {
            wrong("memory is registered with a communicator that is destroyed");
        }
    }
    --refit::testing_support::nccl_counts().communicators;
    delete comm;
    return ncclSuccess;
}
ncclResult_t abort_comm(ncclComm_t comm) {
    {
        const std::lock_guard lock{world().mutex};
        comm->clique->is_aborted = comm->clique->is_aborted || !is_silent;
        comm->clique->stopped.insert(comm->rank);
    }
    world().changed.notify_all();
    --refit::testing_support::nccl_counts().communicators;
    delete comm;
    return ncclSuccess;
}

ncclResult_t enroll(const ncclComm_t comm, void* memory, std::size_t bytes, void** handle) {
    const std::lock_guard lock{world().mutex};
    comm->registered[static_cast<const std::byte*>(memory)] = bytes;
    *handle = memory;
    return ncclSuccess;
}
ncclResult_t strike_off(const ncclComm_t comm, void* handle) {
    const std::lock_guard lock{world().mutex};
    return comm->registered.erase(static_cast<const std::byte*>(handle)) == 1 ? ncclSuccess
                                                                              : ncclInvalidArgument;
}

ncclResult_t allocate(void** memory, std::size_t bytes) {
    *memory = std::malloc(bytes);
    return ncclSuccess;
}
ncclResult_t release(void* memory) {
    std::free(memory);
    return ncclSuccess;
}

ncclResult_t send(const void* memory,
                  std::size_t bytes,
                  ncclDataType_t /*type*/,
                  int peer,
                  ncclComm_t comm,
                  cudaStream_t stream) {
    return add({comm, peer, true, static_cast<std::byte*>(const_cast<void*>(memory)), bytes, stream});
}
ncclResult_t receive(void* memory,
                     std::size_t bytes,
                     ncclDataType_t /*type*/,
                     int peer,
                     ncclComm_t comm,
                     cudaStream_t stream) {
    return add({comm, peer, false, static_cast<std::byte*>(memory), bytes, stream});
}
ncclResult_t broadcast(const void* from,
                       void* to,
                       std::size_t bytes,
                       ncclDataType_t /*type*/,
                       int root,
                       ncclComm_t comm,
                       cudaStream_t stream) {
    if (from != to) {
        const std::lock_guard lock{world().mutex};
        wrong("a broadcast that is not in place");
    }
    const bool gives = root == comm->rank;
    return add({comm, gives ? -1 : root, gives, static_cast<std::byte*>(to), bytes, stream});
}

const char* error_string(ncclResult_t code) {
    return code == ncclRemoteError ? "remote process exited or there was a network error" : "an error";
}
const char* last_error(ncclComm_t /*comm*/) {
    return "";
}

}  // namespace
}  // namespace refit::testing_support::fake

namespace refit::testing_support {

using fake::world;

NcclCounts& nccl_counts() {
    static NcclCounts one;
    return one;
}

void reset_nccl() {
    const std::lock_guard lock{world().mutex};
    world().cliques.clear();
    world().faults.clear();
    world().groups_left = -1;
    nccl_counts().splits = 0;
    nccl_counts().shrinks = 0;
    nccl_counts().kernels = 0;
    nccl_counts().domain_kernels = 0;
}

std::vector<std::string> nccl_faults() {
    const std::lock_guard lock{world().mutex};
    return world().faults;
}

void fail_groups_after(int groups, bool silently) {
    const std::lock_guard lock{world().mutex};
    world().fails_silently = silently;
    world().groups_left = groups;
}

void vanish(bool aloud) {
    fake::is_gone = true;
    fake::is_silent = !aloud;
}

exec::nccl::Library fake_nccl() {
    exec::nccl::Library library;
    library.get_version = &fake::get_version;
    library.get_unique_id = &fake::get_unique_id;
    library.comm_init_rank_config = &fake::init;
    library.comm_split = &fake::split;
    library.comm_shrink = &fake::shrink;
    library.comm_revoke = &fake::revoke;
    library.comm_get_async_error = &fake::get_async_error;
    library.comm_finalize = &fake::finalize;
    library.comm_destroy = &fake::destroy;
    library.comm_abort = &fake::abort_comm;
    library.comm_register = &fake::enroll;
    library.comm_deregister = &fake::strike_off;
    library.mem_alloc = &fake::allocate;
    library.mem_free = &fake::release;
    library.group_start = &fake::start_group;
    library.group_end = &fake::end_group;
    library.send = &fake::send;
    library.recv = &fake::receive;
    library.broadcast = &fake::broadcast;
    library.get_error_string = &fake::error_string;
    library.get_last_error = &fake::last_error;
    return library;
}

}  // namespace refit::testing_support
