// SPDX-License-Identifier: Apache-2.0
#include "refit/nic_routes.hpp"

#include <algorithm>

namespace refit {

NicRoutes::NicRoutes(const Cluster& cluster) {
    const auto& fabric = cluster.fabric();
    const bool has_dead = std::ranges::any_of(fabric.nics, [](const auto& nic) { return !nic.second; });
    if (!fabric.is_rail_only && !has_dead) {
        return;
    }
    std::uint32_t first = 0;
    for (std::uint32_t rank = 0; rank < cluster.gpus(); ++rank) {
        const RankId id{rank};
        first = cluster.domain_of(id) == cluster.domain_of(RankId{first}) ? first : rank;
        ranks_.push_back(
            {first, 0, fabric.is_rail_only ? cluster.rail_of(id) : 0, cluster.nic_share(id) > 0.0});
    }
    for (auto last = ranks_.size(); last > 0; last = ranks_[last - 1].first) {
        const auto begin = ranks_[last - 1].first;
        for (auto rank = begin; rank < last; ++rank) {
            ranks_[rank].count = static_cast<std::uint32_t>(last) - begin;
        }
    }
}

std::optional<NicRoute> NicRoutes::between(RankId source, RankId destination) const {
    const auto from = source.index();
    const auto to = destination.index();
    if (is_plain() || is_joined(from, to)) {
        return NicRoute{source, destination};
    }
    for (std::uint32_t i = 1; ranks_[to].is_up && i < ranks_[from].count; ++i) {
        if (is_joined(after(from, i), to)) {
            return NicRoute{RankId{after(from, i)}, destination};
        }
    }
    for (std::uint32_t j = 1; ranks_[from].is_up && j < ranks_[to].count; ++j) {
        if (is_joined(from, after(to, j))) {
            return NicRoute{source, RankId{after(to, j)}};
        }
    }
    for (std::uint32_t i = 0; i < ranks_[from].count; ++i) {
        for (std::uint32_t j = 0; ranks_[after(from, i)].is_up && j < ranks_[to].count; ++j) {
            if (is_joined(after(from, i), after(to, j))) {
                return NicRoute{RankId{after(from, i)}, RankId{after(to, j)}};
            }
        }
    }
    return std::nullopt;
}

}  // namespace refit
