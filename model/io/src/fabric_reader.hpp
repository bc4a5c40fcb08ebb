// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "draft_reader.hpp"
#include "refit/cluster.hpp"
#include "refit/system.hpp"

namespace refit::io {

/// The GPUs of a job as far as they are known.
struct JobSides {
    std::pair<System, System> systems;
    Placement placement;
    std::optional<std::uint32_t> train_gpus;
    std::optional<std::uint32_t> generate_gpus;
};

/// Pods, rails and NICs that fall short. Faults: ratios below 1, uplinks without pods, NICs of ranks that the
/// job does not have or named twice, rates above the system's, domains without a NIC, rails of nodes of
/// unequal size.
[[nodiscard]] FabricSettings read_fabric(DraftReader& reader, const JobSides& job);

}  // namespace refit::io
