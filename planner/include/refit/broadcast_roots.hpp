// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "refit/packs.hpp"
#include "refit/scenario.hpp"
#include "refit/units.hpp"
#include "refit/workload.hpp"

namespace refit {

/// What one root of a scenario's broadcast sends.
struct SentPacks {
    RankId root;
    std::vector<ExportRun> runs;  ///< All that its peers and it deal out; pieces of packs index them.
    std::vector<Pack> packs;      ///< Its own.
};

/// The packs of these classes, aimed at `target` bytes, dealt over the roots in turn: all over trainers 0, 1,
/// …, or each pipeline stage's over that stage's first ranks. Roots without a pack are left out.
[[nodiscard]] std::vector<SentPacks> dealt_packs(const Scenario& scenario,
                                                 const Workload& workload,
                                                 std::span<const std::uint32_t> classes,
                                                 Bytes target);

/// Trainers over which packs can be dealt: all, or those of a stage.
[[nodiscard]] std::uint32_t most_senders(const Scenario& scenario);

}  // namespace refit
