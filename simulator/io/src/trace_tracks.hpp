// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "refit/cluster.hpp"
#include "refit/simulate.hpp"

namespace refit::io {

/// A bar of a track. Times in whole nanoseconds, so that bars that touch do not overlap.
struct Bar {
    static constexpr std::uint32_t kNone = 0xffffffff;
    static constexpr std::uint32_t kSeveral =
        0xfffffffe;  ///< A receiver: all of a message, whose hops are one.
    enum class Level : std::uint8_t {
        kStage,
        kItem,
        kActivity,
        kWhole
    };  ///< kWhole: an item's only activity.

    Level level = Level::kActivity;
    std::uint32_t track = 0;
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::uint32_t activities = 0;  ///< A bit for each.
    std::uint32_t stage = 0;       ///< Of the plan.
    std::uint32_t first_item = 0;
    std::uint32_t last_item = 0;
    std::uint32_t receiver = kNone;              ///< For hops of messages: where they go, by HopFold.
    std::uint32_t messages = 1;                  ///< For hops of messages: how many.
    std::uint32_t limit = RateSegment::kOwnCap;  ///< Of its longest task.
    std::uint32_t tasks = 0;
    double bytes = 0.0;
    bool is_critical = false;  ///< On the critical path.
    bool is_drain = false;     ///< Waits for the last receiver of a ring.
};

/// What hops of messages are drawn as one: they run all at once, so each bar takes a track.
enum class HopFold : std::uint8_t { kNone, kByRank, kByDomain, kBySender };

struct Track {
    std::uint32_t process = 0;
    std::string name;
};

/// A simulation as bars on tracks. On each track bars nest or follow each other: a plan's stage, in it packs,
/// tensors or messages, in these activities. Lanes whose items overlap have several tracks.
struct Tracks {
    std::vector<std::string> processes;
    std::vector<Track> tracks;
    std::vector<Bar> bars;  ///< By track, then by time, an outer before its inner ones.
    std::vector<std::uint32_t>
        bar_of_task;             ///< The innermost; Bar::kNone for a task shorter than a nanosecond.
    std::uint32_t merged = 1;    ///< Items in a bar, at most.
    bool has_activities = true;  ///< Else an item is one bar.
    HopFold hops = HopFold::kNone;

    [[nodiscard]] static Tracks make(const Simulation& simulation,
                                     const Cluster& cluster,
                                     std::size_t most_bars,
                                     std::size_t most_hops);
};

[[nodiscard]] std::int64_t nanoseconds(double seconds);

}  // namespace refit::io
