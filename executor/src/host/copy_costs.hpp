// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "refit/exec/host_rates.hpp"

namespace refit::exec::host {

/// Seconds a byte for one number of threads, between the points that a probe measured.
class CopyCosts {
public:
    /// Pre: there are rates for each pattern and so many threads.
    CopyCosts(const HostRates& rates, std::uint32_t threads);

    /// `footprint`: bytes touched between two uses of the same memory. Interpolated on logarithmic scales;
    /// beyond the ends of the table, the end.
    [[nodiscard]] double seconds_per_byte(CopyPattern pattern, std::uint64_t run, double footprint) const;

private:
    struct Point {
        double run = 0;        ///< Logarithm.
        double footprint = 0;  ///< Logarithm.
        double cost = 0;       ///< Logarithm.
    };
    /// Of one run length, by ascending footprint; rows by ascending run length.
    using Row = std::vector<Point>;
    std::array<std::vector<Row>, 3> rows_;
};

}  // namespace refit::exec::host
