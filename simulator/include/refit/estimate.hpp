// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "refit/engine.hpp"
#include "refit/loads.hpp"
#include "refit/report.hpp"
#include "refit/scenario.hpp"
#include "refit/workload.hpp"

namespace refit {

/// Everything of a scenario that the closed form needs beside a plan's loads.
struct Setting {
    EngineConstants constants;
    std::uint32_t gpus = 1;
    std::uint32_t train_stages = 1;
    EngineOptions options;
    double exported_share = 1.0;   ///< Of the bytes that are exported, what the busiest set of trainers exports.
    double exported_tensors = 1.0; ///< The same of the Hugging Face tensors.
    double direct_tensors = 0.0;   ///< Hugging Face tensors that a generator loads after method direct.
    double hbm_copy = 1.0;         ///< Of a trainer. Unit: bytes per second.
    double train_nic = 1.0;        ///< Line rates of one GPU. Unit: bytes per second.
    double train_nvlink = 1.0;
    double generate_nic = 1.0;
    double generate_nvlink = 1.0;
    bool is_blackwell = false;     ///< The generators.
    std::uint32_t experts = 0;     ///< Routed experts in a layer.
    double trainer_experts = 0.0;  ///< Routed experts of a layer that a trainer holds.
    double local_expert_layers = 0.0;  ///< Experts that a generator holds, over all layers.
    double local_bytes = 0.0;      ///< Most that a generator holds.
};

/// Host time of one tensor that a receiver loads. Unit: s.
[[nodiscard]] double tensor_seconds(const Setting& setting) noexcept;
/// Host time of a receiver for what it loads: tensor by tensor, and for each byte that reached it. Unit: s.
[[nodiscard]] double loading_seconds(const Setting& setting, double tensors, double bytes) noexcept;

/// Host time of one grouped expert parameter of a trainer stage. Unit: s.
[[nodiscard]] double bulk_parameter_seconds(const Setting& setting, const Reading& reading) noexcept;

[[nodiscard]] Setting make_setting(const Scenario& scenario, const Workload& workload);

/// The time of a plan, taken apart.
struct Estimate {
    Seconds total;
    Seconds transfer;          ///< Links alone: no host, copy or fixed cost.
    Seconds software;          ///< Fixed, finalising and bulk-parameter costs, which an engine may have or not.
    std::vector<Phase> phases;
    std::vector<Term> terms;
};

/// The closed form: stages over resources, with the constants of one engine for all. Formulas and their sources: docs/cost_model.md.
[[nodiscard]] Estimate estimate(const PlanLoads& loads, const Setting& setting, const Reading& reading);
/// By the reading that the options choose.
[[nodiscard]] Estimate estimate(const PlanLoads& loads, const Setting& setting);

/// The total of `estimate` alone, some ten times as fast: for fits.
[[nodiscard]] Seconds estimate_total(const PlanLoads& loads, const Setting& setting, const Reading& reading);
[[nodiscard]] Seconds estimate_total(const PlanLoads& loads, const Setting& setting);

/// Standard deviations of a normal distribution that hold 80 % of it.
inline constexpr double kEightyPercent = 1.2816;

/// A range that holds with 80 % confidence. Each way three independent errors add as squares, in logarithms: the
/// span of the readings left open (for a method that is not calibrated, none to twice the engine's software costs), the fitted
/// constants' errors with their correlations, and the model's own.
struct Range {
    Seconds low;
    Seconds high;
};
[[nodiscard]] Range estimate_range(const PlanLoads& loads, const Setting& setting, bool is_calibrated);

}  // namespace refit
