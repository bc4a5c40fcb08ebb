// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace refit {

/// What is held of a constant before any refit is timed: log-normal, in the constant's base unit.
struct ConstantPrior {
    double value = 0.0;   ///< Its median.
    double spread = 1.0;  ///< Factor of one standard deviation. Range: above 1.
    std::string source;
    bool operator==(const ConstantPrior&) const = default;
};

/// What a constant cannot pass, in its base unit.
struct ConstantBounds {
    double low = 0.0;
    double high = 0.0;
    bool operator==(const ConstantBounds&) const = default;
};

/// A constant of an engine's cost model, in its base unit (second, or a pure number; second per byte).
struct Constant {
    double value = 0.0;
    double low = 0.0;  ///< 68 % interval.
    double high = 0.0;
    std::string unit;  ///< As the file gives it, for people.
    std::string source;
    std::string kind;  ///< "fitted", "prior", "alternative" or "fixed".
    std::vector<std::string> identified_by;  ///< Ids of the published records that determine it.
    std::optional<ConstantPrior> prior = std::nullopt;    ///< Of a constant that is fitted.
    std::optional<ConstantBounds> bounds = std::nullopt;  ///< Physical ones.
    bool operator==(const Constant&) const = default;
};

struct EngineConstants;

/// How the errors of two fitted constants go together.
struct ConstantCorrelation {
    Constant EngineConstants::* first = nullptr;
    Constant EngineConstants::* second = nullptr;
    double value = 0.0;  ///< Range: -1 to 1.
    bool operator==(const ConstantCorrelation&) const = default;
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
    Constant bulk_parameter_cost_every_nic;  ///< The same rows where rings of replicas use every NIC. Unit: s.
    Constant bulk_expert_cost;               ///< Another: per expert of it that a trainer holds. Unit: s.
    Constant finalize_per_expert;            ///< Per local expert and MoE layer, Blackwell generators. Unit: s.
    Constant finalize_slow_allgather_factor; ///< Alternative: share of the NVLink rate that replicas reach.
    Constant finalize_per_local_byte;        ///< Alternative: per byte of the local shard. Unit: s/B.
    // What some engines do beside; no cost where their file is silent.
    Constant staging_cost_per_byte;  ///< Per gathered byte on its way through a sender's host copy. Unit: s/B.
    Constant staging_tensor_cost;    ///< Per Hugging Face tensor of it. Unit: s.
    Constant load_cost_per_byte;             ///< Per byte that reaches a receiver. Unit: s/B.
    Constant nic_sharing;                    ///< How far a broadcast adds to gathers on the same NICs. Range: 0 to 1.
    Constant ring_nics;                      ///< Most NICs of a domain over which a ring spreads its channels.
    Constant ring_hop_cost;                  ///< By how much each rank of a ring lags behind the one before. Unit: s.
    Constant model_error;                    ///< What the model itself is off by: one standard deviation, in logarithms.
    std::vector<ConstantCorrelation> correlations;  ///< Of the logarithms of fitted constants, each pair once.
    bool operator==(const EngineConstants&) const = default;
};

}  // namespace refit
