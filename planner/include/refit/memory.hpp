// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "refit/plan.hpp"
#include "refit/report.hpp"
#include "refit/scenario.hpp"
#include "refit/workload.hpp"

namespace refit {

/// Pack size that the engine aims for on a GPU of this much memory.
/// Source: NeMo RL packed_tensor.py: the ratio of the GPU's memory, capped.
[[nodiscard]] Bytes pack_target(const Engine& engine, Bytes gpu_memory);

/// Memory that the plan needs beside the weights themselves, on one GPU of each side, at its worst moment:
/// while packs are in flight each trainer holds them twice (list and packed) and each receiver once; while bulk stages
/// are in flight each receiver holds one region a stream, and each trainer its expert stack and a staged copy; a rank
/// that sends or passes on relayed messages packs one a stream.
/// Source: NeMo RL packed_tensor.py, megatron_policy_worker.py, vllm_backend.py; docs/cost_model.md.
[[nodiscard]] PeakBytes peak_bytes(const Plan& plan, const Scenario& scenario, const Workload& workload);

/// The largest destination region of the bulk classes: what one more stream costs a receiver.
[[nodiscard]] Bytes largest_region(const Plan& plan, const Workload& workload);

}  // namespace refit
