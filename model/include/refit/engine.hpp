// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "refit/units.hpp"

namespace refit {

/// A constant of an engine's cost model, in its base unit (second, or a pure number; second per byte).
struct Constant {
    double value = 0.0;
    double low = 0.0;  ///< 68 % interval.
    double high = 0.0;
    std::string unit;  ///< As the file gives it, for people.
    std::string source;
    std::string kind;  ///< "fitted", "prior", "alternative" or "fixed".
    std::vector<std::string> identified_by;  ///< Ids of the published records that determine it.
    bool operator==(const Constant&) const = default;
};

/// Software costs of one refit engine, shared by every model, layout and system. Formulas: docs/cost_model.md.
struct EngineConstants {
    Constant nic_efficiency;         ///< Share of the NIC's line rate that NCCL reaches.
    Constant nvlink_efficiency;      ///< The same for NVLink.
    Constant call_cost;              ///< Per collective call of the export. Unit: s.
    Constant tensor_cost;            ///< Per tensor loaded on a receiver. Unit: s.
    Constant tensor_cost_per_expert; ///< Added to it for each routed expert of a layer. Unit: s.
    Constant fixed_cost;             ///< Per refit. Unit: s.
    Constant fixed_cost_per_gpu;     ///< Per refit and GPU. Unit: s.
    Constant bulk_parameter_cost;    ///< Per grouped expert parameter of a trainer stage. Unit: s.
    Constant bulk_parameter_cost_floor;      ///< The other reading of the same rows. Unit: s.
    Constant finalize_per_expert;            ///< Per local expert and MoE layer, Blackwell generators. Unit: s.
    Constant finalize_slow_allgather_factor; ///< Alternative: share of the NVLink rate that replicas reach.
    Constant finalize_per_local_byte;        ///< Alternative: per byte of the local shard. Unit: s/B.
    Constant nic_sharing;                    ///< How far a broadcast adds to gathers on the same NICs. Range: 0 to 1.
    Constant model_error;                    ///< Relative widening of a predicted range, each way.
    bool operator==(const EngineConstants&) const = default;
};

/// Settings of the engine that a user can change, under the framework's own names where it has them.
struct EngineOptions {
    std::uint32_t streams = 2;         ///< NRL_REFIT_NUM_STREAMS: stages in flight.
    std::uint32_t buffers = 2;         ///< NRL_REFIT_NUM_BUFFERS: packs in flight.
    double buffer_memory_ratio = 0.02; ///< NRL_REFIT_BUFFER_MEMORY_RATIO: pack size as a share of GPU memory.
    bool operator==(const EngineOptions&) const = default;
};

/// A refit engine of one version.
struct Engine {
    std::string name;     ///< "nemo-rl".
    std::string title;    ///< "NeMo RL".
    std::string version;
    EngineConstants constants;
    EngineOptions options;
    Bytes pack_cap;       ///< Largest pack, whatever the ratio.
    bool operator==(const Engine&) const = default;
};

}  // namespace refit
