// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "refit/result.hpp"

namespace refit::exec {

/// What a rank is made to suffer, to see that a run ends as it should.
enum class InjectionKind : std::uint8_t {
    kDies,          ///< When it comes to the wave.
    kStalls,        ///< For good, when it comes to the wave.
    kSlows,         ///< From the wave on, everything takes it ten times as long.
    kOutOfMemory,   ///< Cannot allocate.
    kOtherPlan,     ///< Has a program of another digest.
    kOtherVersion,  ///< Is of another version of this program.
    kCorrupts,      ///< Flips a bit of what it sends in the wave.
};

struct Injection {
    InjectionKind kind = InjectionKind::kDies;
    std::uint32_t rank = 0;
    std::uint32_t wave = 0;
    bool operator==(const Injection&) const = default;
};

/// Reads "dies:3@5": kind, rank, and for some kinds the wave (0). Kinds: dies, stalls, slows, memory, plan,
/// version, corrupts. Errors: kInvalidInput naming what it takes.
[[nodiscard]] Result<Injection> parse_injection(std::string_view text);

}  // namespace refit::exec
