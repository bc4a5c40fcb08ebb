// SPDX-License-Identifier: Apache-2.0
#include "refit/sensitivity.hpp"

#include <algorithm>

#include "refit/constant_table.hpp"

namespace refit {
namespace {

/// Step for the elasticity: small beside any interval, large beside rounding.
constexpr double kStep = 1e-4;

/// Moves of the time that are only rounding. Unit: s.
constexpr double kLeastSpan = 1e-9;

}  // namespace

std::vector<Sensitivity> sensitivities(const PlanLoads& loads, const Setting& setting) {
    std::vector<Sensitivity> list;
    for (const auto& entry : constant_table()) {
        const auto& constant = setting.constants.*entry.member;
        const auto time_at = [&](double value) {
            auto changed = setting;
            (changed.constants.*entry.member).value = value;
            return estimate(loads, changed).total;
        };
        Sensitivity one{entry.name, time_at(constant.low), time_at(constant.high), 0.0};
        if (constant.value > 0.0) {
            const auto up = time_at(constant.value * (1.0 + kStep));
            const auto down = time_at(constant.value * (1.0 - kStep));
            one.elasticity = (up - down) / time_at(constant.value) / (2.0 * kStep);
        }
        if (one.span() > kLeastSpan) {
            list.push_back(std::move(one));
        }
    }
    std::ranges::stable_sort(list, std::greater{}, &Sensitivity::span);
    return list;
}

}  // namespace refit
