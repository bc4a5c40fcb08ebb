// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "refit/jitter.hpp"
#include "refit/report.hpp"
#include "refit/scenario.hpp"
#include "refit/simulate.hpp"

namespace refit::cli {

/// The same plan, simulated with more streams.
struct StreamTrial {
    std::uint32_t streams = 1;
    double seconds = 0.0;
};

/// The same refit with ranks drawn anew.
struct ShownJitter {
    Jitter jitter;
    JitterTimes times;
};

/// A simulated refit beside its closed form, to be shown.
struct ShownSimulation {
    const Scenario& scenario;
    const Report& report;  ///< Of this method alone.
    const MethodReport& estimate;
    const Simulation& simulation;
    std::string target;  ///< What the user named.
    std::optional<StreamTrial>
        streams{};  ///< Where the closed form finds that more streams help, and it is so.
    std::optional<ShownJitter> jitter{};
};

/// Seconds of the critical path that one activity takes, and what sets its rate.
struct PathPart {
    Activity activity = Activity::kControl;
    double seconds = 0.0;
    std::string limit;  ///< "NIC in of generators", "hosts of trainers".
};
/// The longest first; activities that are off the path last.
[[nodiscard]] std::vector<PathPart> path_parts(const Simulation& simulation, const Cluster& cluster);

/// Ports of one kind and side, with the rank that used its own most.
struct PortUse {
    std::string name;     ///< "NIC out of trainers".
    std::string busiest;  ///< Whose.
    double bytes = 0.0;
    double busy_seconds = 0.0;
    double share = 0.0;
};
/// The most used first.
[[nodiscard]] std::vector<PortUse> port_uses(const Simulation& simulation, const Cluster& cluster);

/// Seconds of a phase on the critical path, and in the closed form.
struct PhasePair {
    std::string name;
    double seconds = 0.0;
    double estimate = 0.0;
};
[[nodiscard]] std::vector<PhasePair> phase_pairs(const Simulation& simulation, const MethodReport& estimate);

/// The simulation for people: about 40 lines of at most 100 columns, plain ASCII.
[[nodiscard]] std::string simulate_table(const ShownSimulation& shown);

}  // namespace refit::cli
