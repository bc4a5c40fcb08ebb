// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "limits.hpp"

namespace refit::flow {

/// A clock for each link, and each cap, that shows how many bytes a unit of weight it has served: the
/// integral of its level. A flow is owned by its lowest limit and is over when that one's clock shows the
/// flow's tag. So a change of level costs nothing for the flows that it slows.
class ServiceClocks {
public:
    ServiceClocks(const FlowNetwork& network, const Limits& limits);

    /// Brings the clock to `now`, at the level that the owner has had since it was last brought up.
    void advance(std::uint32_t owner, double level, double now) noexcept {
        auto& clock = clocks_[owner];
        if (clock.at != now) {
            if (clock.flows != 0) {
                clock.served += level * (now - clock.at);
            }
            clock.at = now;
        }
    }
    /// Pre: the clock is at the time of the call.
    void own(std::uint32_t owner, std::uint32_t flow, double left);
    /// Takes the flow from its owner. Pre: the owner's clock is at the time of the call. Returns what is left
    /// of it.
    double disown(std::uint32_t flow);
    [[nodiscard]] std::uint32_t owner(std::uint32_t flow) const noexcept { return owner_[flow]; }

    /// Sets when the owner's next flow is over. Pre: its clock has been brought up since its level last
    /// changed.
    void foresee(std::uint32_t owner, double level) noexcept;
    /// When the next flow of all is over.
    [[nodiscard]] double next() noexcept;
    [[nodiscard]] double due(std::uint32_t owner) const noexcept { return due_[owner]; }
    /// Calls `action(owner)` for the owners of which a flow is over by `time`.
    template <class Action>
    void for_each_due(double time, Action&& action) {
        for (std::size_t block = 0; block < lowest_.size(); ++block) {
            if (lowest_[block] <= time) {
                for (auto owner = block * kBlock; owner < (block + 1) * kBlock; ++owner) {
                    if (due_[owner] <= time) {
                        action(static_cast<std::uint32_t>(owner));
                    }
                }
            }
        }
    }

    [[nodiscard]] bool has_flows(std::uint32_t owner) const noexcept { return clocks_[owner].flows != 0; }
    /// The flow of the owner that is over first. Pre: it has one.
    [[nodiscard]] std::uint32_t first(std::uint32_t owner) const noexcept {
        return heap_[clocks_[owner].first];
    }
    [[nodiscard]] double left(std::uint32_t flow) const noexcept {
        return tag_[flow] - clocks_[owner_[flow]].served;
    }

    template <class Action>
    void for_each_owned(std::uint32_t owner, Action&& action) const {
        const auto& clock = clocks_[owner];
        for (std::uint32_t i = 0; i < clock.flows; ++i) {
            action(heap_[clock.first + i]);
        }
    }

private:
    static constexpr std::uint32_t kNobody = 0xffffffff;
    static constexpr std::size_t kBlock = 64;
    struct Clock {
        double served = 0.0;  ///< Unit: bytes a unit of weight.
        double at = 0.0;      ///< Unit: s.
        std::uint32_t first = 0;
        std::uint32_t flows = 0;
    };

    void put(const Clock& clock, std::uint32_t place, std::uint32_t flow) noexcept {
        heap_[clock.first + place] = flow;
        place_[flow] = place;
    }
    void rise(const Clock& clock, std::uint32_t place, std::uint32_t flow) noexcept;
    void sink(const Clock& clock, std::uint32_t place, std::uint32_t flow) noexcept;

    std::vector<Clock> clocks_;           ///< By owner.
    std::vector<double> due_;             ///< By owner, to whole blocks.
    std::vector<double> lowest_;          ///< Of each block of `due_`.
    std::vector<std::uint8_t> is_stale_;  ///< Of each block.
    std::vector<std::uint32_t> heap_;     ///< The flows of each owner, from its `first` on, by tag.
    std::vector<std::uint32_t> place_;    ///< By flow: in its owner's heap.
    std::vector<std::uint32_t> owner_;    ///< By flow; `kNobody` before it starts.
    std::vector<double> tag_;             ///< By flow.
};

}  // namespace refit::flow
