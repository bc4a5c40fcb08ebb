// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "refit/fabric.hpp"
#include "refit/plan.hpp"

namespace refit::fluid {

/// What a run of relays at steady rates showed.
struct Outcome {
    double makespan = 0.0;     ///< Unit: second.
    double port_time = 0.0;    ///< Of the busiest port.
    double most_loaded = 0.0;  ///< Highest rate on any port at any time over what the port can do.
};

namespace detail {

/// Rates of hops that begin and end on one port.
struct Edge {
    double time;
    double change;
};

inline double highest(std::vector<Edge>& edges) {
    std::ranges::sort(edges, [](const Edge& a, const Edge& b) {
        return a.time < b.time || (a.time == b.time && a.change < b.change);
    });
    double sum = 0.0;
    double most = 0.0;
    for (const auto& edge : edges) {
        sum += edge.change;
        most = std::max(most, sum);
    }
    return most;
}

}  // namespace detail

/// Runs every hop chunk by chunk at the rate of its bytes over the busiest port's time. A chunk starts when the one
/// before it has gone and, on a relay, when it has arrived. Shares nothing with the planner but its table.
inline Outcome run_paced(const RelayTable& relays, const Fabric& fabric, std::uint32_t chunks) {
    enum Port : std::size_t { kNicOut, kNicIn, kNvlinkOut, kNvlinkIn, kPorts };
    const auto capacity = [&](std::uint32_t rank, std::size_t port) {
        const auto& rates = fabric.ports(rank);
        const double all[kPorts] = {rates.nic_out, rates.nic_in, rates.nvlink_out, rates.nvlink_in};
        return all[port];
    };
    std::vector<double> bytes(std::size_t{fabric.ranks()} * kPorts, 0.0);
    const auto port_of = [&](std::size_t hop, bool is_out) {
        const auto rank = is_out ? relays.source[hop] : relays.destination[hop];
        const bool is_local = fabric.domain_of(relays.source[hop]) == fabric.domain_of(relays.destination[hop]);
        return std::size_t{rank} * kPorts + (is_local ? (is_out ? kNvlinkOut : kNvlinkIn) : (is_out ? kNicOut : kNicIn));
    };
    const auto amount = [&](std::size_t hop) { return static_cast<double>(relays.messages[relays.message[hop]].bytes); };
    for (std::size_t hop = 0; hop < relays.size(); ++hop) {
        bytes[port_of(hop, true)] += amount(hop);
        bytes[port_of(hop, false)] += amount(hop);
    }
    Outcome outcome;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const auto rate = capacity(static_cast<std::uint32_t>(i / kPorts), i % kPorts);
        outcome.port_time = std::max(outcome.port_time, bytes[i] > 0.0 ? bytes[i] / rate : 0.0);
    }
    const auto chunk_time = outcome.port_time / chunks;
    std::vector<std::vector<double>> ends(relays.size());
    std::vector<std::vector<detail::Edge>> edges(bytes.size());
    for (std::size_t hop = 0; hop < relays.size(); ++hop) {
        double end = 0.0;
        for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
            const auto parent = relays.follows[hop];
            const auto begin = parent == RelayTable::kNone ? end : std::max(end, ends.at(parent).at(chunk));
            end = begin + chunk_time;
            ends[hop].push_back(end);
        }
        // Ends a little earlier, so that rounding does not let a hop and its successor overlap.
        const auto rate = amount(hop) / outcome.port_time;
        for (const auto port : {port_of(hop, true), port_of(hop, false)}) {
            edges[port].push_back({ends[hop].front() - chunk_time, rate});
            edges[port].push_back({end * (1.0 - 1e-12), -rate});
        }
        outcome.makespan = std::max(outcome.makespan, end);
    }
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (!edges[i].empty()) {
            outcome.most_loaded = std::max(
                outcome.most_loaded,
                detail::highest(edges[i]) / capacity(static_cast<std::uint32_t>(i / kPorts), i % kPorts));
        }
    }
    return outcome;
}

}  // namespace refit::fluid
