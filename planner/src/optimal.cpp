// SPDX-License-Identifier: Apache-2.0
#include "refit/optimal.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "optimal/busy.hpp"
#include "optimal/router.hpp"

namespace refit {
namespace {

/// As many as keep each chunk of the largest message long enough to be worth its posting.
std::uint32_t chunks_of(const RelayTable& relays) {
    constexpr std::uint64_t kMostChunks = 128;
    std::uint64_t largest = 0;
    for (const auto& message : relays.messages) {
        largest = std::max(largest, message.bytes);
    }
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(largest / kSmallestMessage, 1, kMostChunks));
}

}  // namespace

RelayTable optimal_relays(const SliceTable& slices, const Fabric& fabric) {
    constexpr std::size_t kManyHops = 2'000'000;
    const auto bound = lower_bound(slices, fabric).time.value();
    const auto time_of = [&](const RelayTable& relays) {
        return std::max(busiest_port(port_seconds(relays, fabric)).time.value(), uplink_seconds(relays, fabric));
    };
    // The first plan holds even if it is endless, because a port that nothing can replace is down.
    auto best = route_within(slices, fabric, {bound, 1.0, 0.5});
    auto least = time_of(best);
    // Where whole slices end above the bound, smaller messages serve, or some slack from the beginning rather than none at
    // the end.
    constexpr std::array<std::array<double, 3>, 7> kFurtherAttempts{{{1.0, 1.0, 0.02},
                                                                     {1.0, 0.04, 0.02},
                                                                     {1.0, 0.01, 0.005},
                                                                     {1.01, 0.01, 0.005},
                                                                     {1.02, 0.01, 0.005},
                                                                     {1.04, 0.01, 0.005},
                                                                     {1.08, 0.01, 0.005}}};
    for (const auto& [slack, largest, finest] : kFurtherAttempts) {
        // Where there are millions of hops, a further attempt takes seconds and the last percents are not worth them.
        if (least <= bound * std::max(1.001, slack) || (best.size() > kManyHops && least <= bound * 1.05)) {
            break;
        }
        auto relays = route_within(slices, fabric, {bound * slack, largest, finest});
        const auto time = time_of(relays);
        if (time < least * (1.0 - 1e-6)) {
            least = time;
            best = std::move(relays);
        }
    }
    best.chunks = chunks_of(best);
    return best;
}

std::uint64_t least_hops(const SliceTable& slices) {
    std::uint64_t hops = 0;
    for (const auto& slice : slices.slices()) {
        hops += slice.bytes > 0 ? slices.rank_set(slice.receivers).size() : 0;
    }
    return hops;
}

std::vector<PortSeconds> port_seconds(const RelayTable& relays, const Fabric& fabric) {
    std::vector<PortLoad> loads(fabric.ranks());
    for (std::size_t i = 0; i < relays.size(); ++i) {
        const auto from = relays.source[i];
        const auto to = relays.destination[i];
        const auto bytes = static_cast<double>(relays.messages[relays.message[i]].bytes);
        const bool is_local = fabric.domain_of(from) == fabric.domain_of(to);
        (is_local ? loads[from].nvlink_out : loads[from].nic_out) += bytes;
        (is_local ? loads[to].nvlink_in : loads[to].nic_in) += bytes;
    }
    std::vector<PortSeconds> ports;
    ports.reserve(fabric.ranks());
    for (std::uint32_t rank = 0; rank < fabric.ranks(); ++rank) {
        const auto& rates = fabric.ports(rank);
        const auto& load = loads[rank];
        ports.push_back({seconds(load.nic_out, rates.nic_out),
                         seconds(load.nic_in, rates.nic_in),
                         seconds(load.nvlink_out, rates.nvlink_out),
                         seconds(load.nvlink_in, rates.nvlink_in)});
    }
    return ports;
}

double uplink_seconds(const RelayTable& relays, const Fabric& fabric) {
    const auto& spine = fabric.spine();
    std::vector<double> up(spine.pods(), 0.0);
    std::vector<double> down(spine.pods(), 0.0);
    for (std::size_t i = 0; spine.pods() > 0 && i < relays.size(); ++i) {
        const auto from = fabric.pod_of(fabric.domain_of(relays.source[i]));
        const auto to = fabric.pod_of(fabric.domain_of(relays.destination[i]));
        const auto bytes = from == to ? 0.0 : static_cast<double>(relays.messages[relays.message[i]].bytes);
        up[from] += bytes;
        down[to] += bytes;
    }
    double longest = 0.0;
    for (std::uint32_t pod = 0; pod < spine.pods(); ++pod) {
        longest = std::max({longest, seconds(up[pod], spine.up[pod]), seconds(down[pod], spine.down[pod])});
    }
    return longest;
}

BusiestPort busiest_port(const std::vector<PortSeconds>& ports) {
    BusiestPort busiest;
    for (std::uint32_t rank = 0; rank < ports.size(); ++rank) {
        const auto raise = [&](double time, const char* resource) {
            if (Seconds{time} > busiest.time) {
                busiest = {Seconds{time}, resource, rank};
            }
        };
        raise(ports[rank].nic_out, "nic-out");
        raise(ports[rank].nic_in, "nic-in");
        raise(ports[rank].nvlink_out, "nvlink-out");
        raise(ports[rank].nvlink_in, "nvlink-in");
    }
    return busiest;
}

Seconds paced_time(const RelayTable& relays, const Fabric& fabric) {
    if (relays.size() == 0) {
        return Seconds{};
    }
    const auto hops = static_cast<double>(relays.depth() - 1);
    const auto busy = std::max(busiest_port(port_seconds(relays, fabric)).time, Seconds{uplink_seconds(relays, fabric)});
    return busy * (1.0 + hops / relays.chunks);
}

}  // namespace refit
