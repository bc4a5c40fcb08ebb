// SPDX-License-Identifier: Apache-2.0
#include "region_reuse.hpp"

#include <algorithm>
#include <map>

namespace refit::exec {

using program::Arena;
using program::RankProgram;
using program::Region;

std::vector<std::uint32_t> waves_before(const RankProgram& program) {
    std::vector<std::uint32_t> before(program.regions.size(), 0);
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < program.regions.size(); ++i) {
        if (program.regions[i].arena == Arena::kScratch) {
            order.push_back(i);
        }
    }
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return program.regions[i].first_wave; });
    // From an offset to the next: how many waves until its last user's is complete.
    std::map<std::uint64_t, std::uint32_t> users{{0, 0}};
    const auto split = [&](std::uint64_t at) {
        return users.try_emplace(at, std::prev(users.upper_bound(at))->second).first;
    };
    for (const auto i : order) {
        const Region& region = program.regions[i];
        const auto end = split(region.offset + region.bytes());
        const auto begin = split(region.offset);
        for (auto user = begin; user != end; ++user) {
            before[i] = std::max(before[i], user->second);
        }
        users.erase(std::next(begin), end);
        begin->second = region.last_wave + 1;
    }
    return before;
}

}  // namespace refit::exec
