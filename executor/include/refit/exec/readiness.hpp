// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <queue>

#include "refit/program.hpp"

namespace refit::exec {

/// An operation of a program.
struct Place {
    std::uint32_t wave = 0;
    std::uint32_t index = 0;  ///< In its wave.
    bool operator==(const Place&) const = default;
};

/// How far a rank may run ahead of its earliest wave that is not complete.
struct Ahead {
    /// Waves. With n, staging that serves a wave may serve the n-th after it again. Range: >= 1; 1 is wave by
    /// wave.
    std::uint32_t waves = 4;
    /// Operations posted and not complete, while those of the earliest wave may always be posted. Range:
    /// >= 1.
    std::uint32_t operations = 64;
};

/// When a rank may post an operation: not once the waves before its own are complete, but once no operation
/// of them that is open gives what it takes, uses memory that it changes or changes memory that it uses, has
/// the same peer in the same lane and direction, or the same group. So a message that is passed on flows,
/// while slower ones take the time that they take. Every rank comes to an end: of the earliest wave that is
/// not complete on all ranks, each may post all.
class Readiness {
public:
    /// Pre: the program outlives this. Operations of no bytes are left out.
    explicit Readiness(const program::RankProgram& program, const Ahead& ahead = {});

    /// Everything is to be done again.
    void restart();
    /// An operation that may be posted now, the earliest first, of a wave receives first; it is open from now
    /// on.
    [[nodiscard]] std::optional<Place> next();
    /// Pre: it is open.
    void finish(const Place& place);
    /// Waves that are complete, with all before them. Range: 0 to the program's waves.
    [[nodiscard]] std::uint32_t waves_done() const noexcept { return waves_done_; }
    [[nodiscard]] bool is_done() const noexcept { return waves_done_ == first_.size() - 1; }

private:
    struct Node {
        Place place;
        std::uint32_t wave_needed = 0;         ///< That so many waves are complete.
        std::uint32_t operations_needed = 0;   ///< That so many others are complete.
        std::vector<std::uint32_t> followers;  ///< Those that wait for it.
    };

    void add_nodes();
    void find_needs();
    void need(std::uint32_t later, std::uint32_t earlier);
    void release(std::uint32_t node);
    void pass_waves();

    const program::RankProgram& program_;
    Ahead ahead_;
    std::vector<Node> nodes_;                          ///< In the order of posting.
    std::vector<std::uint32_t> first_;                 ///< By wave: its first node; one more at the end.
    std::vector<std::vector<std::uint32_t>> node_of_;  ///< By place.
    std::vector<std::vector<std::uint32_t>>
        held_;  ///< By wave: nodes that need it complete, with all before it.

    std::vector<std::uint32_t> missing_;  ///< By node: what it still needs.
    std::vector<std::uint32_t> left_;     ///< By wave: operations not complete.
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready_;
    std::uint32_t open_ = 0;
    std::uint32_t waves_done_ = 0;
};

}  // namespace refit::exec
