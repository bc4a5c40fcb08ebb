// SPDX-License-Identifier: Apache-2.0
#include "refit/ring.hpp"

#include <cstdint>
#include <map>

namespace refit {

RingGates ring_gates(const std::vector<std::vector<RankId>>& domains, const NicRoutes& routes) {
    std::vector<std::map<std::uint32_t, std::vector<std::size_t>>> by_rail(domains.size());
    std::map<std::uint32_t, std::size_t> fewest;
    for (std::size_t d = 0; d < domains.size(); ++d) {
        for (std::size_t i = 0; i < domains[d].size(); ++i) {
            if (routes.is_up(domains[d][i])) {
                by_rail[d][routes.rail_of(domains[d][i])].push_back(i);
                fewest[routes.rail_of(domains[d][i])] = domains[d].size();
            }
        }
    }
    for (auto& [rail, count] : fewest) {
        for (auto& places : by_rail) {
            const auto found = places.find(rail);
            count = std::min(count, found == places.end() ? 0 : found->second.size());
        }
    }
    const bool is_joined = std::ranges::any_of(fewest, [](const auto& rail) { return rail.second > 0; });
    RingGates gates(domains.size());
    for (std::size_t d = 0; d < domains.size(); ++d) {
        for (const auto& [rail, places] : by_rail[d]) {
            const auto taken = !is_joined || fewest.size() == 1 ? places.size() : fewest.at(rail);
            gates[d].insert(
                gates[d].end(), places.begin(), places.begin() + static_cast<std::ptrdiff_t>(taken));
        }
        for (std::size_t i = 0; gates[d].empty() && i < domains[d].size(); ++i) {
            gates[d].push_back(i);
        }
    }
    return gates;
}

}  // namespace refit
