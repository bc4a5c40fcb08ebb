// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "refit/flow_network.hpp"

namespace refit::flow {

/// Which ways never carry flows at the same time, as far as the order of flows within lanes shows.
///
/// The flows of a lane are dealt into steps, each of whose flows follows all flows of the step before: so
/// flows of two steps never run together. Where a flow follows too few for that, a new row of steps begins.
class WayOrder {
public:
    /// `lanes`: by flow; flows of unlike lanes may always meet. `number`: by the network's way, what it
    /// counts as here. Range: [0, ways).
    WayOrder(const FlowNetwork& network,
             std::span<const std::uint32_t> lanes,
             const std::vector<std::uint32_t>& number,
             std::uint32_t ways);

    /// Whether two ways may have flows that run at the same time; a way always meets itself.
    [[nodiscard]] bool may_meet(std::uint32_t a, std::uint32_t b) const noexcept {
        return row_of_way_[a] == kMany || row_of_way_[a] != row_of_way_[b] || meets_[a * ways_ + b] != 0;
    }

    /// Whether any two ways are known not to meet.
    [[nodiscard]] bool has_rows() const noexcept { return !meets_.empty(); }
    /// How many ways it may meet.
    [[nodiscard]] std::size_t meetings(std::uint32_t way) const noexcept;

private:
    static constexpr std::uint32_t kNone = 0xffffffff;
    static constexpr std::uint32_t kMany = 0xfffffffe;  ///< Of ways: flows in more than one row, or in none.

    struct Step {
        std::uint32_t row = 0;
        std::uint32_t flows = 0;
    };
    /// The step under way in a lane, and the one before.
    struct Front {
        std::uint32_t last = kNone;
        std::uint32_t before = kNone;
    };
    /// All flows of the step, as many as it had then, are over when the flow is.
    struct Behind {
        std::uint32_t step = kNone;
        std::uint32_t flows = 0;
    };

    [[nodiscard]] bool follows_all(std::uint32_t flow, std::uint32_t step);
    void place(std::uint32_t flow, Front& front);
    void find_meetings();

    const FlowNetwork& network_;
    const std::vector<std::uint32_t>& number_;
    std::size_t ways_;
    std::vector<Step> steps_;
    std::uint32_t rows_ = 0;
    std::vector<std::uint32_t> step_of_;  ///< By flow; kNone for one without links.
    std::vector<Behind> behind_;          ///< By flow without links.
    std::vector<std::uint32_t> counted_;  ///< By flow: for which flow it was counted last.
    std::vector<std::uint32_t> row_of_way_;
    std::vector<std::uint8_t> meets_;  ///< By pair of ways of one row.
};

}  // namespace refit::flow
