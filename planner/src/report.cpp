// SPDX-License-Identifier: Apache-2.0
#include "refit/report.hpp"

#include <algorithm>

namespace refit {

std::string_view name_of(ReportKind kind) noexcept {
    return kind == ReportKind::kSimulate ? "simulate" : "estimate";
}

const MethodReport* Report::find(Method method) const noexcept {
    const auto found = std::ranges::find(methods, method, &MethodReport::method);
    return found == methods.end() ? nullptr : &*found;
}

}  // namespace refit
