// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "refit/simulate.hpp"

namespace refit {

/// From a moment on, a rate.
struct RatePoint {
    double at = 0.0;    ///< Unit: s.
    double rate = 0.0;  ///< Unit: bytes per second.
    bool operator==(const RatePoint&) const = default;
};

/// What links carried when: exact, constant between the moments at which the simulation changed a rate.
class LinkRates {
public:
    /// Pre: the simulation kept its segments, and lives longer.
    explicit LinkRates(const Simulation& simulation);

    /// The sum of the links' rates, each times its `per_byte`; ascending in time, the last is 0. Empty where
    /// nothing went over them.
    [[nodiscard]] std::vector<RatePoint> course(std::span<const LinkUse> links) const;

private:
    /// A segment of a task that uses the link.
    struct Entry {
        std::uint32_t segment;
        double per_byte;
    };

    const Simulation& simulation_;
    std::vector<std::size_t> first_;  ///< By link: of its entries.
    std::vector<Entry> entries_;
};

/// The mean in each of `bins` equal parts of the time from 0 to `end`: the integral stays the same.
[[nodiscard]] std::vector<double> binned(std::span<const RatePoint> course, double end, std::size_t bins);

/// By task: the link that set its rate for most of its time, or RateSegment::kOwnCap.
/// Pre: the simulation kept its segments.
[[nodiscard]] std::vector<std::uint32_t> task_limits(const Simulation& simulation);

}  // namespace refit
