// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "refit/units.hpp"

namespace refit {

/// One line of a table of nccl-tests, out of place or in place.
struct NcclSample {
    double bytes = 0.0;    ///< Through each hop of the ring: bus bandwidth times time.
    double size = 0.0;     ///< As the test counts it. Unit: byte.
    double seconds = 0.0;  ///< Range: above 0.
};

/// What one run of a test of nccl-tests printed.
struct NcclTable {
    std::string test;         ///< "all_gather", "broadcast", "sendrecv" …; empty where nothing tells.
    std::string where;        ///< File, and the line of the table's header.
    std::uint32_t ranks = 0;  ///< 0 where the log does not list them.
    std::uint32_t hosts = 0;
    std::vector<NcclSample> samples;
    std::uint64_t wrong = 0;  ///< Elements that the test found wrong.
};

/// What a table says of the links: time = latency + bytes / rate.
struct LinkFit {
    double rate = 0.0;     ///< From the larger half of the sizes. Unit: bytes per second.
    double spread = 1.0;   ///< Factor of one standard deviation of the rate.
    double latency = 0.0;  ///< From the smaller half; 0 where it cannot be told. Unit: second.
    std::size_t samples = 0;
};

/// Weighted least squares of time over bytes, every sample with the same relative error: the rate over the
/// samples above the middle size (in logarithms), the latency over the others. Fewer than two sizes give the
/// fastest sample's rate. Pre: at least one sample.
[[nodiscard]] LinkFit fit_link(const NcclTable& table);

}  // namespace refit
