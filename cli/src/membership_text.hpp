// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "options.hpp"
#include "refit/membership_cost.hpp"
#include "refit/report.hpp"

namespace refit::cli {

/// One method before and after a change of members.
struct MembershipMethod {
    MethodReport before;
    MethodReport after;
    std::uint32_t communicators = 0;
    std::array<MembershipCost, 2> costs;  ///< By MembershipWay.

    /// The faults of the side that is refused; those before the change first.
    [[nodiscard]] const Faults& refused() const noexcept {
        return before.refused.empty() ? after.refused : before.refused;
    }
    /// The way that loses less time.
    [[nodiscard]] MembershipWay cheaper() const;
    /// Whether its range lies below the other's.
    [[nodiscard]] bool is_clear() const;
};

/// What a change of members costs.
struct MembershipAnswer {
    std::string scenario;
    std::vector<GpuRun> lost;
    std::vector<GpuRun> gained;
    GenerateLayout layout;
    MembershipChange change;
    std::uint32_t train_gpus = 0;
    std::uint32_t gpus_least = 1;  ///< Of the jobs that were measured.
    std::uint32_t gpus_most = 1;
    std::vector<MembershipMethod> methods;
};

/// As the format asks; a table is at most 100 columns wide.
[[nodiscard]] std::string membership_text(const MembershipAnswer& answer, Format format);

}  // namespace refit::cli
