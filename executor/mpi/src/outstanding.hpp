// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "refit/program.hpp"

namespace refit::exec {

/// What a rank waits for, kept so that another thread can read it at any time.
class Outstanding {
public:
    /// Pre: the program outlives this.
    explicit Outstanding(const program::RankProgram& program);

    /// The rank does something that is no wave: "the start of a run". Pre: the text is static.
    void enter(const char* phase) noexcept { phase_.store(phase); }
    /// The rank begins a wave: everything in it is outstanding.
    void begin(std::uint32_t wave) noexcept;
    /// An operation of the wave, by its index, is complete.
    void finish(std::size_t operation) noexcept { is_open_[operation].store(false); }

    /// "in wave 3 of 17 (stage 0); outstanding: receive 4096 B from rank 7, send 64 B to rank 2".
    [[nodiscard]] std::string describe() const;

private:
    const program::RankProgram& program_;
    std::atomic<const char*> phase_{"the beginning"};
    std::atomic<std::uint32_t> wave_{program::kNone};
    std::unique_ptr<std::atomic<bool>[]> is_open_;
};

}  // namespace refit::exec
