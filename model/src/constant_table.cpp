// SPDX-License-Identifier: Apache-2.0
#include "refit/constant_table.hpp"

#include <algorithm>
#include <array>

namespace refit {
namespace {

using C = EngineConstants;
constexpr std::array kTable{
    NamedConstant{"nic_efficiency", &C::nic_efficiency, "1", true, true},
    NamedConstant{"nvlink_efficiency", &C::nvlink_efficiency, "1", true, true},
    NamedConstant{"call_cost", &C::call_cost, "s"},
    NamedConstant{"tensor_cost", &C::tensor_cost, "s"},
    NamedConstant{"tensor_cost_per_expert", &C::tensor_cost_per_expert, "s"},
    NamedConstant{"fixed_cost", &C::fixed_cost, "s"},
    NamedConstant{"fixed_cost_per_gpu", &C::fixed_cost_per_gpu, "s"},
    NamedConstant{"bulk_parameter_cost", &C::bulk_parameter_cost, "s"},
    NamedConstant{"bulk_parameter_cost_floor", &C::bulk_parameter_cost_floor, "s"},
    NamedConstant{"bulk_parameter_cost_every_nic", &C::bulk_parameter_cost_every_nic, "s"},
    NamedConstant{"bulk_expert_cost", &C::bulk_expert_cost, "s"},
    NamedConstant{"finalize_per_expert", &C::finalize_per_expert, "s"},
    NamedConstant{"finalize_slow_allgather_factor", &C::finalize_slow_allgather_factor, "1", false, true},
    NamedConstant{"finalize_per_local_byte", &C::finalize_per_local_byte, "s/B"},
    NamedConstant{"staging_cost_per_byte", &C::staging_cost_per_byte, "s/B"},
    NamedConstant{"staging_tensor_cost", &C::staging_tensor_cost, "s"},
    NamedConstant{"load_cost_per_byte", &C::load_cost_per_byte, "s/B"},
    NamedConstant{"nic_sharing", &C::nic_sharing, "1", true},
    NamedConstant{"ring_nics", &C::ring_nics, "1", true},
    NamedConstant{"ring_hop_cost", &C::ring_hop_cost, "s", true},
    NamedConstant{"model_error", &C::model_error, "1", true}};

constexpr std::array kUnits{ConstantUnit{"1", 1.0},
                            ConstantUnit{"s", 1.0},
                            ConstantUnit{"ms", 1e-3},
                            ConstantUnit{"us", 1e-6},
                            ConstantUnit{"ns", 1e-9},
                            ConstantUnit{"ms/GB", 1e-12}};

}  // namespace

std::span<const ConstantUnit> constant_units() noexcept {
    return kUnits;
}

double unit_factor(std::string_view unit) noexcept {
    const auto* const found =
        std::ranges::find_if(kUnits, [&](const ConstantUnit& entry) { return unit == entry.name; });
    return found == kUnits.end() ? 1.0 : found->factor;
}

std::span<const NamedConstant> constant_table() noexcept {
    return kTable;
}

const NamedConstant* find_constant(std::string_view name) noexcept {
    const auto* const found =
        std::ranges::find_if(kTable, [&](const NamedConstant& entry) { return name == entry.name; });
    return found == kTable.end() ? nullptr : found;
}

}  // namespace refit
