// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "refit/gui/groups.hpp"

namespace refit::gui {

/// What a user can point at; the same thing has the same target in every view.
struct Target {
    enum class Kind : std::uint8_t {
        kNone,
        kGroup,     ///< `a`: a group of ranks by `level`.
        kPair,      ///< `a`: the group that sends; `b`: the group that receives.
        kTensor,    ///< `a`: a class of the workload.
        kLane,      ///< `a`: a lane of the course.
        kTask,      ///< `a`: a task of the course.
        kPort,      ///< `a`: a Port; `b`: the group by `level` that has it.
        kMethod,    ///< `a`: a Method.
    };
    Kind kind = Kind::kNone;
    Grouping level = Grouping::kRank;
    std::uint32_t a = 0;
    std::uint32_t b = 0;

    [[nodiscard]] bool is_set() const noexcept { return kind != Kind::kNone; }
    bool operator==(const Target&) const = default;
};

/// "pair:stage:3>17", "rank:13", "tensor:4": the same in every view and in files. "" for nothing.
[[nodiscard]] std::string id_of(const Target& target);

}  // namespace refit::gui
