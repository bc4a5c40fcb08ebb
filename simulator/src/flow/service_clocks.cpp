// SPDX-License-Identifier: Apache-2.0
#include "service_clocks.hpp"

#include <algorithm>
#include <utility>

namespace refit::flow {

ServiceClocks::ServiceClocks(const FlowNetwork& network, const Limits& limits)
    : clocks_(limits.owners()),
      due_((limits.owners() + kBlock - 1) / kBlock * kBlock, kUnlimited),
      lowest_(due_.size() / kBlock, kUnlimited),
      is_stale_(lowest_.size(), 0),
      place_(network.flows()),
      owner_(network.flows(), kNobody),
      tag_(network.flows()) {
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        for (const auto& use : network.uses(flow)) {
            ++clocks_[use.link].first;
        }
        if (const auto cap = limits.cap_of(flow); cap != limits.never()) {
            ++clocks_[cap].first;
        }
    }
    std::uint32_t first = 0;
    for (auto& clock : clocks_) {
        first += std::exchange(clock.first, first);
    }
    heap_.resize(first);
}

void ServiceClocks::rise(const Clock& clock, std::uint32_t place, std::uint32_t flow) noexcept {
    while (place != 0) {
        const auto parent = (place - 1) / 2;
        const auto above = heap_[clock.first + parent];
        if (tag_[above] <= tag_[flow]) {
            break;
        }
        put(clock, place, above);
        place = parent;
    }
    put(clock, place, flow);
}

void ServiceClocks::sink(const Clock& clock, std::uint32_t place, std::uint32_t flow) noexcept {
    while (2 * place + 1 < clock.flows) {
        auto child = 2 * place + 1;
        if (child + 1 < clock.flows &&
            tag_[heap_[clock.first + child + 1]] < tag_[heap_[clock.first + child]]) {
            ++child;
        }
        const auto below = heap_[clock.first + child];
        if (tag_[flow] <= tag_[below]) {
            break;
        }
        put(clock, place, below);
        place = child;
    }
    put(clock, place, flow);
}

void ServiceClocks::own(std::uint32_t owner, std::uint32_t flow, double left) {
    auto& clock = clocks_[owner];
    owner_[flow] = owner;
    tag_[flow] = clock.served + left;
    rise(clock, clock.flows++, flow);
}

double ServiceClocks::disown(std::uint32_t flow) {
    auto& clock = clocks_[owner_[flow]];
    const auto place = place_[flow];
    const auto last = heap_[clock.first + --clock.flows];
    if (last != flow) {
        if (place != 0 && tag_[last] < tag_[heap_[clock.first + (place - 1) / 2]]) {
            rise(clock, place, last);
        } else {
            sink(clock, place, last);
        }
    }
    const auto left = std::max(tag_[flow] - clock.served, 0.0);
    if (clock.flows == 0) {
        clock.served = 0.0;  // no flow's tag refers to it: start afresh, with the fewest roundings
    }
    return left;
}

void ServiceClocks::foresee(std::uint32_t owner, double level) noexcept {
    const auto& clock = clocks_[owner];
    double due = kUnlimited;
    if (clock.flows != 0 && level > 0.0) {
        due = clock.at + std::max(tag_[first(owner)] - clock.served, 0.0) / level;
    }
    due_[owner] = due;
    is_stale_[owner / kBlock] = 1;
}

double ServiceClocks::next() noexcept {
    double next = kUnlimited;
    for (std::size_t block = 0; block < lowest_.size(); ++block) {
        if (is_stale_[block] != 0) {
            const auto* const due = due_.data() + block * kBlock;
            double lowest = due[0];
            for (std::size_t i = 1; i < kBlock; ++i) {
                lowest = due[i] < lowest ? due[i] : lowest;
            }
            lowest_[block] = lowest;
            is_stale_[block] = 0;
        }
        next = std::min(next, lowest_[block]);
    }
    return next;
}

}  // namespace refit::flow
