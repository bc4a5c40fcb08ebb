// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "refit/units.hpp"

namespace refit {

/// What limits a job between its NVLink domains beside healthy NICs.
struct FabricSettings {
    /// NVLink domains, in order of their number, under one group of leaf switches; 0: the network is one pod.
    std::uint32_t domains_per_pod = 0;
    /// What the NICs of a pod reach over what its uplinks do. Range: >= 1.
    double oversubscription = 1.0;
    /// NICs of GPUs at one place of their nodes reach only each other.
    bool is_rail_only = false;
    /// By rank: line rate that the GPU's NICs still reach together; none where they are down.
    std::map<std::uint32_t, std::optional<Bandwidth>> nics;

    /// Whether NICs alone limit, and all of them as their system says.
    [[nodiscard]] bool is_plain() const noexcept { return !has_spine() && !is_rail_only && nics.empty(); }
    /// Whether uplinks may limit.
    [[nodiscard]] bool has_spine() const noexcept { return domains_per_pod > 0 && oversubscription > 1.0; }
    bool operator==(const FabricSettings&) const = default;
};

}  // namespace refit
