// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "refit/estimate.hpp"
#include "refit/membership.hpp"
#include "refit/plan.hpp"
#include "refit/scenario.hpp"

namespace refit {

/// Communicators of one kind, of all of which a generator is a member; they are made one after the other.
struct CommunicatorKind {
    std::uint32_t count = 1;
    std::uint32_t ranks = 1;  ///< Of each.
    bool operator==(const CommunicatorKind&) const = default;
};

/// Those over which a method moves weights. Packed broadcasts: one with all ranks that take part, or one for
/// each trainer stage with a root of its own; transfers of `hybrid` and `m2n`: one for each trainer stage,
/// with its ranks and all generators; `direct`, `striped`, `optimal`: one of all ranks, which is assumed.
/// Source: github NVIDIA-NeMo/RL, pull request 3720, and nccl_reshard_utils.py as of 2026-08.
[[nodiscard]] std::vector<CommunicatorKind> communicators_of(Method method, const Scenario& scenario);
[[nodiscard]] std::uint32_t count_of(std::span<const CommunicatorKind> kinds) noexcept;

/// How the members of communicators change.
enum class MembershipWay : std::uint8_t {
    kRebuild,        ///< All are made anew, once, without the lost and with the new ranks.
    kShrinkAndGrow,  ///< Each leaves the lost ranks out, if any, then takes the new ones in, if any.
};
/// "rebuild", "shrink-and-grow".
[[nodiscard]] const char* name_of(MembershipWay way) noexcept;

/// A time with its ends.
struct RangedTime {
    Seconds value;
    Seconds low;
    Seconds high;
};

/// What the change takes beside the refits themselves. Low ends: as if all communicators were made at the
/// same time.
struct MembershipCost {
    RangedTime change;  ///< Of the members.
    RangedTime setup;   ///< By how much the first refit after it takes longer: connections.
    /// Both.
    [[nodiscard]] RangedTime lost() const;
};

/// For n communicators of N ranks: change = n (a + b N), setup = n c. A shrink counts the ranks before the
/// change, all else those after it. Where ranks go and come at once, connections are set up once, by the
/// larger of both figures. Pre: `before` and `after` are those of the job before and after `change`. Source:
/// docs/membership.md.
[[nodiscard]] MembershipCost membership_cost(MembershipWay way,
                                             const MembershipChange& change,
                                             std::span<const CommunicatorKind> before,
                                             std::span<const CommunicatorKind> after,
                                             const MembershipConstants& constants);

}  // namespace refit
