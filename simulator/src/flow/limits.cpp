// SPDX-License-Identifier: Apache-2.0
#include "limits.hpp"

#include <algorithm>
#include <cmath>

namespace refit::flow {

namespace {
double cap_level(const Flow& flow) {
    return flow.rate_cap / flow.weight;
}
}  // namespace

Limits::Limits(const FlowNetwork& network) : network_{&network}, links_{network.links()} {
    bool has_two_uses = true;
    std::uint32_t uses = 0;
    if (!network.has_own_ways()) {
        first_use_.reserve(network.flows());
    }
    for (std::uint32_t number = 0; number < network.flows(); ++number) {
        const auto& flow = network.flow(number);
        const auto path = network.uses(number);
        if (!network.has_own_ways()) {
            first_use_.push_back(uses);
        }
        uses += static_cast<std::uint32_t>(path.size());
        has_two_uses &= path.size() == 2;
        is_pairs_ &= path.size() + (std::isinf(flow.rate_cap) ? 0 : 1) <= 2;
        for (const auto& use : path) {
            is_unit_ &= use.per_byte * flow.weight == 1.0;
        }
        if (!std::isinf(flow.rate_cap)) {
            caps_.push_back(cap_level(flow));
        }
    }
    std::sort(caps_.begin(), caps_.end());
    caps_.erase(std::unique(caps_.begin(), caps_.end()), caps_.end());
    caps_.shrink_to_fit();
    cells_ = first_private() + (is_pairs_ ? 0 : uses);
    if (!has_two_uses) {
        flow_of_use_.reserve(uses);
        for (std::uint32_t number = 0; number < network.flows(); ++number) {
            flow_of_use_.insert(flow_of_use_.end(), network.uses(number).size(), number);
        }
    }
}

std::uint32_t Limits::cap_of(std::uint32_t flow) const noexcept {
    const auto& what = network_->flow(flow);
    if (std::isinf(what.rate_cap)) {
        return never();
    }
    const auto place = std::lower_bound(caps_.begin(), caps_.end(), cap_level(what));
    return links_ + static_cast<std::uint32_t>(place - caps_.begin());
}

bool Limits::has_private(std::uint32_t flow) const noexcept {
    return !is_pairs_ &&
           network_->uses(flow).size() + (std::isinf(network_->flow(flow).rate_cap) ? 0 : 1) > 2;
}

std::uint32_t Limits::cell_of(std::uint32_t flow, std::uint32_t index) const noexcept {
    if (has_private(flow)) {
        return first_private() + first_use(flow) + index;
    }
    const auto uses = network_->uses(flow);
    return uses.size() == 2 ? uses[1 - index].link : cap_of(flow);
}

}  // namespace refit::flow
