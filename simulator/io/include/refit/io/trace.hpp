// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "refit/cluster.hpp"
#include "refit/io/json_file.hpp"
#include "refit/simulate.hpp"

namespace refit::io {

/// Above these, what is drawn is put together.
struct TraceOptions {
    std::size_t most_slices = 200'000;  ///< Then several packs, tensors or messages are one.
    std::size_t most_hops = 4'000;      ///< Then a rank's messages to the same rank, domain, or all are one.
    std::size_t most_links = 64;  ///< Then the links of a side and kind of port share a counter: their sum.
    std::size_t most_points = 20'000;  ///< Of a counter. Then it holds means over equal parts of the time.
};

/// What a trace holds.
struct TraceSize {
    std::uint64_t slices = 0;
    std::uint64_t points = 0;  ///< Of counters.
    std::uint64_t arrows = 0;
    std::uint32_t merged = 1;    ///< Packs, tensors or messages in a slice, at most.
    bool has_activities = true;  ///< Else a pack or tensor is one slice.
    bool is_whole = false;       ///< Else the sink wanted no more.
    bool operator==(const TraceSize&) const = default;
};

/// Writes a simulation as Chrome trace events (JSON), which Perfetto and chrome://tracing open: a process for
/// each side and stage, a thread for each lane, nested slices (stage, pack or tensor, activity), counters of
/// link rates, and arrows along the critical path and the hops of relayed messages. docs/simulation.md
/// describes it. The same simulation gives the same bytes. Pre: the simulation kept its segments.
[[nodiscard]] TraceSize write_trace(const Simulation& simulation,
                                    const Cluster& cluster,
                                    const TextSink& sink,
                                    const TraceOptions& options = {});

}  // namespace refit::io
