// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "refit/exec/staged_program.hpp"
#include "refit/program.hpp"

namespace refit::exec {

/// A message, or what one member gives another of a collective, between the memories of two ranks.
struct Carry {
    std::uint32_t giver = 0;  ///< Ranks.
    std::uint32_t taker = 0;
    std::uint64_t from = 0;  ///< Addresses.
    std::uint64_t to = 0;
    std::uint64_t bytes = 0;
    bool operator==(const Carry&) const = default;
};

/// What an end gives of its message; empty where it only takes.
[[nodiscard]] MessageRange given_range(const program::Operation& operation);

/// What has to be carried in a wave of all ranks' programs. Pre: `programs` has all ranks, `staged` their
/// staged waves. Errors: std::logic_error where an operation has no other end, or the ends disagree on its
/// size.
[[nodiscard]] std::vector<Carry> carries_of(std::span<const program::RankProgram> programs,
                                            std::span<const std::vector<StagedWave>> staged,
                                            std::uint32_t wave);

}  // namespace refit::exec
