// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "refit/bound.hpp"
#include "refit/fabric.hpp"
#include "refit/plan.hpp"
#include "refit/slices.hpp"
#include "refit/units.hpp"

namespace refit {

/// Messages over relays that keep every port busy no longer than the bound asks, as nearly as greedy choices can:
/// what leaves the holders' domains once is balanced by a maximum flow and reserved; each message enters each other
/// domain once, from a holder while that stays within the bound's time, else from the domain that it entered first;
/// GPUs use their own NIC while it stays within that time, else an idle neighbour's over NVLink; the receivers of a
/// domain take turns in landing messages. Slices are cut only where a set of receivers has fewer of them than ways in.
/// Where all bytes can go straight from balanced holders within the bound, no message is relayed.
/// Source: docs/optimal.md.
[[nodiscard]] RelayTable optimal_relays(const SliceTable& slices, const Fabric& fabric);

/// Hops without which no plan can move the slices: one for each receiver of each. Known before anything is planned.
[[nodiscard]] std::uint64_t least_hops(const SliceTable& slices);

/// How long each port is busy. Unit: second.
struct PortSeconds {
    double nic_out = 0.0;
    double nic_in = 0.0;
    double nvlink_out = 0.0;
    double nvlink_in = 0.0;
};

/// How long the busiest uplink of a pod is busy, up or down. Unit: second; 0 without pods.
[[nodiscard]] double uplink_seconds(const RelayTable& relays, const Fabric& fabric);

/// By rank; a hop inside a domain goes over NVLink. A port that is down and used takes infinitely long.
[[nodiscard]] std::vector<PortSeconds> port_seconds(const RelayTable& relays, const Fabric& fabric);

/// The port that is busy longest.
struct BusiestPort {
    Seconds time;
    std::string resource;  ///< "nic-out", "nic-in", "nvlink-out", "nvlink-in".
    std::uint32_t rank = 0;
};
[[nodiscard]] BusiestPort busiest_port(const std::vector<PortSeconds>& ports);

/// Time of the relays when each hop runs at a steady rate, its bytes over the busiest port's time, and passes chunks on:
/// the port time, longer by the chunk that each further hop waits for.
/// Source: docs/optimal.md.
[[nodiscard]] Seconds paced_time(const RelayTable& relays, const Fabric& fabric);

}  // namespace refit
