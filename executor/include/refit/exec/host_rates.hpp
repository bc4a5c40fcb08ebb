// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "refit/program_schedule.hpp"
#include "refit/result.hpp"
#include "refit/units.hpp"

namespace refit::exec {

/// How runs of bytes lie in memory on either side.
enum class CopyPattern : std::uint8_t {
    kGather,   ///< Apart at the source: a giver's rows go to several takers.
    kScatter,  ///< Apart at the destination: a taker's rows come from several givers.
    kRepeat,   ///< What a thread has just read, to one more taker.
};
[[nodiscard]] std::string_view name_of(CopyPattern pattern) noexcept;

/// A rate at which all threads together copy.
struct CopyRate {
    CopyPattern pattern = CopyPattern::kGather;
    std::uint32_t threads = 1;
    std::uint64_t run = 0;        ///< Bytes that lie together on both sides.
    std::uint64_t footprint = 0;  ///< Bytes read and written between two uses of the same memory.
    double bytes_per_second = 0.0;
    bool operator==(const CopyRate&) const = default;
};

/// What it takes to predict how long the transport `host` takes on a machine.
struct HostRates {
    std::uint32_t threads = 1;
    std::vector<CopyRate> copies;
    Seconds wave;  ///< Until all threads have begun the next wave.
    Seconds copy;  ///< Of one copy of a few bytes.
    Seconds yardstick;  ///< Of the copy by which another moment is compared (refit/exec/yardstick.hpp).
};

/// Measures this machine in up to five rounds, of which the median counts; no round begins after 80 s. `tell`
/// hears what is done, in [0, 1]. `most_bytes`: the largest footprint, at least 64 KiB. Errors: those of a run.
[[nodiscard]] Result<HostRates> probe_host(std::uint32_t threads,
                                           Bytes most_bytes,
                                           const std::function<void(double)>& tell = {});

/// How long a run of all waves takes by these rates. Source: docs/executor.md, "Prediction".
/// Pre: rates of one thread and of all threads, for each pattern.
[[nodiscard]] Seconds predict_host(const program::Schedule& schedule, const HostRates& rates);

}  // namespace refit::exec
