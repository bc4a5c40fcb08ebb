// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "refit/result.hpp"
#include "refit/units.hpp"

namespace refit {

/// How much of a link a flow takes for each byte that it moves: 1, or 2 where a relay sends a message on to two ranks,
/// or 1/8 where a ring's bytes are spread over eight NICs. Range: above 0.
struct LinkUse {
    std::uint32_t link = 0;
    double per_byte = 1.0;
    bool operator==(const LinkUse&) const = default;
};

/// Bytes that go over all their links at one rate. A flow without links is a delay: it runs at its cap.
struct Flow {
    double bytes = 0.0;     ///< Range: 0 or more. A flow of 0 bytes is over as it starts.
    double weight = 1.0;    ///< Its rate, against others that the same link slows. Range: above 0.
    double rate_cap = std::numeric_limits<double>::infinity();  ///< Unit: bytes per second. Range: above 0.
    Seconds earliest{0.0};  ///< Not before this time.
    Seconds latency{0.0};   ///< From the end of the last flow it follows, or `earliest`, to its first byte.
};

/// A link that changes its rate, or fails: then flows over it stand still.
struct LinkChange {
    Seconds at{0.0};
    std::uint32_t link = 0;
    std::optional<double> rate;  ///< Unit: bytes per second. Nothing: the link is down.
};

/// Flows over links, and which flow follows which. Rates are shared by weighted max-min fairness: a flow's rate is its
/// weight times the lowest level of its links, or its cap; a link's level is the largest at which it is not overloaded.
class FlowNetwork {
public:
    /// Unit: bytes per second. Returns the link's number.
    std::uint32_t add_link(double rate);
    /// A way over links that flows can share, for `add_flow_on`. Returns the way's number.
    std::uint32_t add_way(std::span<const LinkUse> uses);
    /// Of a flow with a way of its own. `after`: flows that must be over first; may name flows that are added later.
    /// Returns the flow's number.
    std::uint32_t add_flow(const Flow& flow, std::span<const LinkUse> uses, std::span<const std::uint32_t> after = {});
    /// Pre: the way exists.
    std::uint32_t add_flow_on(std::uint32_t way, const Flow& flow, std::span<const std::uint32_t> after = {});
    void add_change(const LinkChange& change) { changes_.push_back(change); }
    /// `uses`: of all ways.
    void reserve(std::size_t flows, std::size_t uses, std::size_t dependencies);

    [[nodiscard]] std::uint32_t links() const noexcept { return static_cast<std::uint32_t>(rates_.size()); }
    [[nodiscard]] std::uint32_t flows() const noexcept { return static_cast<std::uint32_t>(flows_.size()); }
    [[nodiscard]] double rate(std::uint32_t link) const noexcept { return rates_[link]; }
    [[nodiscard]] const Flow& flow(std::uint32_t flow) const noexcept { return flows_[flow]; }
    [[nodiscard]] std::span<const LinkUse> uses(std::uint32_t flow) const noexcept { return way(way_of(flow)); }
    [[nodiscard]] std::uint32_t ways() const noexcept { return static_cast<std::uint32_t>(first_use_.size() - 1); }
    [[nodiscard]] std::span<const LinkUse> way(std::uint32_t way) const noexcept {
        return {uses_.data() + first_use_[way], uses_.data() + first_use_[way + 1]};
    }
    [[nodiscard]] std::uint32_t way_of(std::uint32_t flow) const noexcept {
        return are_ways_shared_ ? way_of_[flow] : flow;
    }
    /// Whether each flow has a way of its own, of the flow's number.
    [[nodiscard]] bool has_own_ways() const noexcept { return !are_ways_shared_; }
    [[nodiscard]] std::uint32_t all_uses() const noexcept { return all_uses_; }  ///< Of all flows.
    /// The number of the way's first use among the uses of all ways.
    [[nodiscard]] std::uint32_t first_use(std::uint32_t way) const noexcept { return first_use_[way]; }
    [[nodiscard]] bool has_order() const noexcept { return !after_.empty(); }
    [[nodiscard]] std::span<const std::uint32_t> after(std::uint32_t flow) const noexcept;
    [[nodiscard]] std::span<const LinkChange> changes() const noexcept { return changes_; }

    /// All that keeps it from being run, by the number of the link, flow or change: rates, bytes, weights, caps, times
    /// and uses out of range or not a number, links and flows that do not exist, a link twice in a flow, a flow with
    /// neither link nor cap, flows that wait for each other.
    [[nodiscard]] Faults faults() const;

private:
    void share_ways();
    std::uint32_t append_way(std::span<const LinkUse> uses);
    std::uint32_t append_flow(std::uint32_t way, const Flow& flow, std::span<const std::uint32_t> after);

    std::vector<double> rates_;
    std::vector<Flow> flows_;
    std::uint32_t all_uses_ = 0;
    bool are_ways_shared_ = false;
    std::vector<std::uint32_t> way_of_;        ///< By flow, where ways are shared.
    std::vector<std::uint32_t> first_use_{0};  ///< By way.
    std::vector<LinkUse> uses_;
    std::vector<std::uint32_t> first_after_;  ///< Empty until a flow follows another.
    std::vector<std::uint32_t> after_;
    std::vector<LinkChange> changes_;
};

}  // namespace refit
