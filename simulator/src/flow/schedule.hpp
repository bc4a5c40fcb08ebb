// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <queue>

#include "refit/flow_network.hpp"

namespace refit::flow {

/// Which flows may start when, and which links change when.
class Schedule {
public:
    explicit Schedule(const FlowNetwork& network);

    /// When the next flow starts; infinity where none waits for a time.
    [[nodiscard]] double next_start() const noexcept;
    /// When the next link changes.
    [[nodiscard]] double next_change() const noexcept;
    /// The next flow that starts by `now`, in the order of their times, then of their numbers.
    [[nodiscard]] std::optional<std::uint32_t> take_start(double now);
    [[nodiscard]] const LinkChange* take_change(double now);
    /// Lets flows go that waited for this one.
    void finish(std::uint32_t flow, double now);

private:
    void release(std::uint32_t flow, double after);

    const FlowNetwork& network_;
    std::vector<std::uint32_t> waits_;           ///< By flow: how many it waits for; empty where none does.
    std::vector<std::uint32_t> first_follower_;  ///< By flow.
    std::vector<std::uint32_t> followers_;
    using Start = std::pair<double, std::uint32_t>;
    std::priority_queue<Start, std::vector<Start>, std::greater<>> starts_;
    std::uint32_t next_at_once_ = 0;  ///< Flows from here on may start at 0 s and have not been asked for.
    std::vector<LinkChange> changes_;
    std::size_t next_change_ = 0;
};

}  // namespace refit::flow
