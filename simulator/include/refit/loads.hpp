// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "refit/plan.hpp"
#include "refit/scenario.hpp"
#include "refit/traffic.hpp"
#include "refit/workload.hpp"

namespace refit {

/// How long the busiest ports and uplink are busy, where NICs differ or the network limits, at line rate; the plain forms
/// hold where they do not. Unit: second.
struct FabricLoad {
    double nic = 0.0;
    double nvlink = 0.0;
    double spine = 0.0;
    std::string nic_name;    ///< "NIC of trainer 17".
    std::string spine_name;  ///< "uplink of pod 2".
};

/// The slowest group of a collective: what it must move and over which links, at line rates.
struct RingLoad {
    CollectiveRole role = CollectiveRole::kWeightBroadcast;
    double wire_bytes = 0.0;      ///< Through each hop of the ring.
    bool crosses_domains = false;
    double channels = 1.0;        ///< NICs that the ring can use in each domain; 1 inside one.
    double nic = 0.0;             ///< Line rate of one rank's NICs. Unit: bytes per second.
    double nvlink = 0.0;          ///< Line rate. Unit: bytes per second.
    std::uint64_t calls = 0;
    FabricLoad fabric;            ///< Of all groups of the collective together.
};

/// The busiest ports of one side, for point-to-point transfers and broadcasts. A NIC that falls short counts as many
/// bytes as a healthy one would move in its time. Unit: byte.
struct PortPeaks {
    double nic_out = 0.0;
    double nic_in = 0.0;
    double nvlink_out = 0.0;
    double nvlink_in = 0.0;
};

/// What one stage of a plan puts on links, copy engines and hosts.
struct StageLoads {
    StageKind kind = StageKind::kGather;
    std::vector<RingLoad> rings;
    PortPeaks train;
    PortPeaks generate;
    FabricLoad fabric;         ///< Of its transfers; of its collectives for kBroadcast, which run at once.
    std::uint32_t hops = 0;    ///< For kRelay: on the longest way of a message.
    std::uint32_t chunks = 1;  ///< For kRelay: in which ranks pass a message on.
    double payload = 0.0;
    double copied = 0.0;
    std::uint64_t loaded_tensors = 0;
    std::uint64_t expert_parameters = 0;
    std::uint64_t other_parameters = 0;
};

/// A plan reduced to what the closed form needs; independent of any efficiency or software cost.
struct PlanLoads {
    Method method = Method::kGatherBroadcast;
    std::vector<StageLoads> stages;
    Traffic traffic{0};
    FabricLoad bulk;                     ///< Of all transfer stages together, transfers and collectives.
    std::uint32_t busiest_sender = 0;    ///< Rank whose NICs send longest.
    std::uint32_t busiest_receiver = 0;  ///< Rank whose NICs receive longest.
};

[[nodiscard]] PlanLoads make_loads(const Plan& plan, const Cluster& cluster);

}  // namespace refit
