// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

#include "refit/io/library.hpp"

namespace refit {

/// The project's data folder.
[[nodiscard]] inline io::Library shipped_library() { return io::Library::open(REFIT_DATA_DIR).value(); }

/// Round constants of NeMo RL's size, without intervals: what tests of formulas reckon with, whatever a new fit gives.
inline void pin_constants(EngineConstants& constants) {
    const auto pin = [](Constant& constant, double value) { constant.value = constant.low = constant.high = value; };
    pin(constants.nic_efficiency, 0.94);
    pin(constants.nvlink_efficiency, 0.69);
    pin(constants.call_cost, 0.33e-3);
    pin(constants.tensor_cost, 92e-6);
    pin(constants.tensor_cost_per_expert, 0.12e-6);
    pin(constants.fixed_cost, 0.14);
    pin(constants.fixed_cost_per_gpu, 0.3e-3);
    pin(constants.bulk_parameter_cost, 5.2e-3);
    pin(constants.bulk_parameter_cost_floor, 1e-3);
    pin(constants.bulk_parameter_cost_every_nic, 6.2e-3);
    pin(constants.bulk_expert_cost, 0.24e-3);
    pin(constants.finalize_per_expert, 27e-6);
    pin(constants.finalize_slow_allgather_factor, 0.16);
    pin(constants.finalize_per_local_byte, 4.7e-12);
    pin(constants.model_error, 0.07);
    constants.correlations.clear();
}

/// A shipped scenario, with pinned constants where they are NeMo RL's and some fields changed as flags would. Throws with the first fault where it does not resolve.
[[nodiscard]] inline Scenario shipped_scenario(
    const std::string& name, std::initializer_list<std::pair<std::string, std::string>> changes = {}) {
    const auto library = shipped_library();
    auto draft = library.scenario(name).value();
    for (const auto& [field, value] : changes) {
        draft.apply({field, value, ""});
    }
    auto scenario = io::resolve(draft, library);
    if (!scenario) {
        throw std::runtime_error{scenario.error().front().message};
    }
    if (scenario->engine.name == "nemo-rl") {
        pin_constants(scenario->engine.constants);
    }
    return std::move(*scenario);
}

/// Qwen3-30B-A3B kept in blockwise FP8 by both sides, 16 H100s each, laid out as in a published time, with some fields
/// changed.
[[nodiscard]] inline Scenario qwen_30b_in_fp8(
    std::initializer_list<std::pair<std::string, std::string>> changes = {}) {
    io::ScenarioDraft draft;
    for (const auto& [field, value] : std::initializer_list<std::pair<std::string, std::string>>{
             {"model", "qwen3-30b-a3b"},
             {"dtype", "fp8"},
             {"train.layout", "ep8"},
             {"train.gpus", "16"},
             {"generate.layout", "tp2"},
             {"generate.gpus", "16"},
             {"system", "h100-nvl8"}}) {
        draft.apply({field, value, ""});
    }
    for (const auto& [field, value] : changes) {
        draft.apply({field, value, ""});
    }
    auto scenario = io::resolve(draft, shipped_library());
    if (!scenario) {
        throw std::runtime_error{scenario.error().front().message};
    }
    return std::move(*scenario);
}

}  // namespace refit
