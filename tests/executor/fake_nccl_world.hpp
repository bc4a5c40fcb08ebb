// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nccl.h>

// What the fake NCCL's processes share, and what one has of a communicator.
namespace refit::testing_support::fake {

struct Message {
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
    bool is_registered = false;
    bool is_being_taken = false;
    bool is_taken = false;
};

/// Ranks that communicate.
struct Clique {
    int size = 0;
    int joined = 0;
    bool is_split = false;
    bool is_aborted = false;
    std::set<int> stopped;  ///< Ranks whose ends are over, whoever waits for them.
    std::map<std::pair<int, int>, std::deque<std::shared_ptr<Message>>> ways;  ///< By sender and receiver.
    std::vector<std::map<int, int>> colors;  ///< By number of the split, rank: what it asked for.
    std::vector<std::map<int, std::vector<int>>> exclusions;  ///< By number of the shrink, rank.
};

struct World {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::string, std::shared_ptr<Clique>> cliques;
    std::vector<std::string> faults;
    std::uint64_t ids = 0;
    int groups_left = -1;
    bool fails_silently = false;
};
inline World& world() {
    static World one;
    return one;
}

inline void wrong(const std::string& what) {
    world().faults.push_back(what);
}

}  // namespace refit::testing_support::fake

struct ncclComm {
    std::shared_ptr<refit::testing_support::fake::Clique> clique;
    std::string id;
    int rank = 0;
    bool is_in_progress = true;
    bool has_failed = false;
    bool is_revoked = false;
    bool was_broken = false;  ///< When it was revoked.
    std::size_t splits = 0;
    std::size_t shrinks = 0;
    bool is_shrinking = false;    ///< The child is a part of it, else split off.
    ncclComm_t* child = nullptr;  ///< Where it is to be put.
    std::shared_ptr<int> outstanding = std::make_shared<int>(0);  ///< Kernels.
    std::map<const std::byte*, std::size_t> registered;

    [[nodiscard]] bool has(const void* memory, std::size_t bytes) const {
        const auto* begin = static_cast<const std::byte*>(memory);
        auto found = registered.upper_bound(begin);
        return found != registered.begin() &&
               begin + bytes <= std::prev(found)->first + std::prev(found)->second;
    }
};
