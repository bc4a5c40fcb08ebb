// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "refit/exec/injection.hpp"
#include "refit/program.hpp"
#include "refit/result.hpp"
#include "refit/units.hpp"

namespace refit::exec {

/// Of what executors say to each other; raised when it changes.
inline constexpr std::uint32_t kProtocol = 2;

/// What each rank says of itself before a run.
struct Greeting {
    std::uint32_t rank = 0;
    std::uint32_t protocol = kProtocol;
    std::uint64_t digest = 0;
};

/// The fault of the lowest rank that is unlike most others: "other-plan" or "other-version".
[[nodiscard]] Faults agree(const std::vector<Greeting>& greetings);
/// The same for programs of one process, with what is injected.
[[nodiscard]] Faults agree(const std::vector<program::RankProgram>& programs,
                           const std::vector<Injection>& injections);

/// Whether a fault of this kind is to strike a rank.
[[nodiscard]] bool strikes(const std::vector<Injection>& injections, InjectionKind kind, std::uint32_t rank);

/// "too-little-memory", with what is needed and what there is.
[[nodiscard]] Fault too_little_memory(Bytes needed, Bytes available);
[[nodiscard]] Fault cannot_allocate(const program::RankProgram& program);

}  // namespace refit::exec
