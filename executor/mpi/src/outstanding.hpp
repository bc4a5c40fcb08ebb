// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "refit/exec/readiness.hpp"
#include "refit/program.hpp"

namespace refit::exec {

/// What a rank waits for, kept so that another thread can read it at any time.
class Outstanding {
public:
    /// Pre: the program outlives this.
    explicit Outstanding(const program::RankProgram& program);

    /// The rank does something that is no wave: "the start of a run". Pre: the text is static.
    void enter(const char* phase) noexcept { phase_.store(phase); }
    /// The rank begins to wait for its first wave.
    void begin() noexcept;
    void begin(const Place& place) noexcept { is_open_[number_of(place)].store(true); }
    void finish(const Place& place) noexcept { is_open_[number_of(place)].store(false); }
    /// So many waves are complete.
    void pass(std::uint32_t waves) noexcept { wave_.store(waves); }

    /// "in wave 3 of 17 (stage 0); outstanding: receive 4096 B from rank 7, send 64 B to rank 2": the earliest wave that is
    /// not complete, and what is open of it and of later ones.
    [[nodiscard]] std::string describe() const;

private:
    [[nodiscard]] std::size_t number_of(const Place& place) const noexcept { return first_[place.wave] + place.index; }

    const program::RankProgram& program_;
    std::vector<std::size_t> first_;  ///< By wave: the number of its first operation.
    std::atomic<const char*> phase_{"the beginning"};
    std::atomic<std::uint32_t> wave_{program::kNone};
    std::unique_ptr<std::atomic<bool>[]> is_open_;
};

}  // namespace refit::exec
