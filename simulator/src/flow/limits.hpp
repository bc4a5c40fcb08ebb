// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "refit/flow_network.hpp"

namespace refit::flow {

inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// What can limit a flow, as numbers of cells that each hold a level. A level is a rate a unit of weight, so
/// that two flows at one limit have equal levels whatever their weights.
///
/// First come the links of the network; then one cell for each distinct cap; then one that never limits.
/// Flows with three limits or more have a private cell for each of their uses, which holds the lowest of
/// their other limits.
class Limits {
public:
    explicit Limits(const FlowNetwork& network);

    [[nodiscard]] std::uint32_t links() const noexcept { return links_; }
    /// Links and caps: what a flow can run at.
    [[nodiscard]] std::uint32_t owners() const noexcept {
        return links_ + static_cast<std::uint32_t>(caps_.size());
    }
    [[nodiscard]] std::uint32_t never() const noexcept { return owners(); }
    [[nodiscard]] std::uint32_t first_private() const noexcept { return owners() + 1; }
    [[nodiscard]] std::uint32_t cells() const noexcept { return cells_; }
    /// No flow has more than two limits, so none has private cells.
    [[nodiscard]] bool is_pairs() const noexcept { return is_pairs_; }
    /// Each flow takes a byte of each of its links for each byte at a weight of one.
    [[nodiscard]] bool is_unit() const noexcept { return is_unit_; }

    [[nodiscard]] const std::vector<double>& caps() const noexcept { return caps_; }
    /// The cell of the flow's cap, or `never()`.
    [[nodiscard]] std::uint32_t cap_of(std::uint32_t flow) const noexcept;
    [[nodiscard]] bool has_private(std::uint32_t flow) const noexcept;
    /// The cell that holds the lowest of the flow's limits other than its use number `index`.
    [[nodiscard]] std::uint32_t cell_of(std::uint32_t flow, std::uint32_t index) const noexcept;
    /// The number of the flow's first use among the uses of all flows.
    [[nodiscard]] std::uint32_t first_use(std::uint32_t flow) const noexcept {
        return first_use_.empty() ? network_->first_use(flow) : first_use_[flow];
    }
    /// Of the use that has this number among the uses of all flows.
    [[nodiscard]] std::uint32_t flow_of(std::uint32_t use) const noexcept {
        return flow_of_use_.empty() ? use >> 1U : flow_of_use_[use];
    }

private:
    const FlowNetwork* network_;
    std::uint32_t links_ = 0;
    std::vector<double> caps_;  ///< Distinct and rising.
    std::uint32_t cells_ = 0;
    bool is_pairs_ = true;
    bool is_unit_ = true;
    std::vector<std::uint32_t> first_use_;    ///< By flow; empty where each has a way of its own.
    std::vector<std::uint32_t> flow_of_use_;  ///< Empty where each flow has exactly two uses.
};

}  // namespace refit::flow
