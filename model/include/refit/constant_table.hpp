// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "refit/engine.hpp"

namespace refit {

/// A constant of the cost model by the name that it has in files and reports.
struct NamedConstant {
    const char* name;
    Constant EngineConstants::*member;
    const char* unit;          ///< Base unit: "s", "s/B" or "1".
    bool is_required = false;  ///< Every engine's file has it; a cost that others lack is none.
    bool is_share = false;     ///< Part of a rate that is reached: above 0 and at most 1.
};

/// Every constant once, in the order of the files of data/engines.
[[nodiscard]] std::span<const NamedConstant> constant_table() noexcept;

/// A unit in which files give constants, in seconds, seconds per byte, or one.
struct ConstantUnit {
    const char* name;  ///< "ms".
    double factor;     ///< 1e-3.
};
[[nodiscard]] std::span<const ConstantUnit> constant_units() noexcept;

/// The factor of a unit; 1 for none.
[[nodiscard]] double unit_factor(std::string_view unit) noexcept;

/// The entry of a name, or null.
[[nodiscard]] const NamedConstant* find_constant(std::string_view name) noexcept;

}  // namespace refit
