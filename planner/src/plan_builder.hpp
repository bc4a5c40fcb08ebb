// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "refit/plan.hpp"
#include "refit/scenario.hpp"
#include "refit/workload.hpp"

namespace refit {

using ClassIndices = std::vector<std::uint32_t>;

/// Adds the gather and the broadcast of these classes: NeMo RL's path for everything, or for what is not bulk.
/// Source: Megatron-Bridge conversion/param_mapping.py; NeMo RL packed_tensor.py.
void add_gather_broadcast(Plan& plan, const Scenario& scenario, const Workload& workload, const ClassIndices& classes);

/// The same where no framework's groups are known, or left: the first holders of each tensor's shards gather it, the first
/// trainer among them, which broadcasts it.
void add_plain_gather_broadcast(Plan& plan, const Cluster& cluster, const Workload& workload,
                                const ClassIndices& classes, bool has_broadcast = true);

/// The gather alone, for an engine that sends pieces of full parameters. Pre: there are classes.
/// Source: miles update_weight_from_distributed; NeMo RL docs/guides/checkpoint-engine-refit.md.
void add_gather(Plan& plan, const Scenario& scenario, const Workload& workload, const ClassIndices& classes);

/// How point-to-point transfers are spread over the replicas of source and destination.
enum class Spread : std::uint8_t {
    kEveryReplica,  ///< Each destination rank gets all it wants from a holder; holders take turns.
    kStripes,       ///< Each replica gets one stripe, then they gather the rest among themselves.
};

/// Adds one transfer stage for each trainer stage.
/// Source of kStripes: NeMo RL xferdtensor_python.py.
void add_transfers(Plan& plan, const Cluster& cluster, const Workload& workload, const ClassIndices& classes,
                   Spread spread, TransferOrder order = TransferOrder::kByTensor);

}  // namespace refit
