// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "refit/m2n_limits.hpp"
#include "refit/m2n_settings.hpp"
#include "refit/m2n_tensor.hpp"
#include "refit/result.hpp"
#include "refit/scenario.hpp"
#include "refit/workload.hpp"

namespace refit {

/// The layers of a parameter class that go from one trainer stage to one generator stage: a call each, all
/// alike. Their communicator holds the trainers of the stage, then its generators; routed experts are stacked
/// along axis 0.
struct M2nStageCalls {
    std::uint32_t parameter = 0;  ///< Index of the class in the workload.
    std::uint32_t train_stage = 0;
    std::uint32_t generate_stage = 0;
    std::uint64_t calls = 0;       ///< Layers.
    M2nSettings settings;          ///< M2N's own, with the NVLink domains of these ranks.
    std::optional<M2nCall> call;   ///< Nothing where M2N cannot describe what ranks hold.
    bool keeps_rank_order = true;  ///< Else shards lie on neighbouring ranks only once ranks are renumbered.
    std::vector<M2nRefusal> refused;
    bool operator==(const M2nStageCalls&) const = default;
};

/// Who sends a class by M2N, whose meshes have equally many replicas of each shard: all holders, or where ranks are lost as
/// many of each shard as there are of the one that lost most.
[[nodiscard]] Distribution m2n_source(const WorkloadClass& entry, const Losses& losses);

/// The calls that move all parameters of a refit by M2N, in order of classes and their slices.
/// Source: NCCL M2N 0.2, benchmarks/reshard_model_bench.cu: how layouts become meshes of replicas and shards.
[[nodiscard]] std::vector<M2nStageCalls> m2n_calls(const Scenario& scenario, const Workload& workload);

/// Why M2N cannot move all parameters of the scenario: a kInfeasible fault for each limit and its numbers,
/// with the classes that exceed it as the place.
[[nodiscard]] Faults m2n_scenario_faults(const Scenario& scenario, const Workload& workload);

}  // namespace refit
