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

/// Who gathers full parameters, and may broadcast them.
struct Gatherers {
    /// By pipeline stage, places of its ranks within it, ascending, whose groups have lost nobody: in no stage; or,
    /// where there are no such places and all gather the same, in theirs.
    std::vector<std::vector<std::uint32_t>> places;
    /// By sphere, trainers that gather the same, which are all or those of each pipeline stage: these ranks.
    std::vector<std::vector<RankId>> roots;
    /// In some sphere there are none: the first of the holders that are left gather, and the first trainer broadcasts.
    bool is_plain = false;
    RankId first;  ///< Trainer that is left.
};
/// Groups of a framework are made anew without replicas that have lost a rank: TP, expert-TP and EP groups join places
/// of a stage to blocks, pipeline broadcasts join stages. Where each block has lost a rank in some stage, those stages'
/// blocks gather that are whole, and get from holders in the others what is left there.
[[nodiscard]] Gatherers gatherers_of(const Scenario& scenario);

/// Whether each pipeline stage gathers and sends what it holds: the option, unless nothing but the plain way is left.
[[nodiscard]] bool gathers_by_stage(const Scenario& scenario);

/// The packs of these classes, aimed at `target` bytes, dealt over the roots in turn: all over trainers 0, 1,
/// …, or each pipeline stage's over that stage's first ranks, of those that gather. Roots without a pack are left out.
[[nodiscard]] std::vector<SentPacks> dealt_packs(const Scenario& scenario,
                                                 const Workload& workload,
                                                 std::span<const std::uint32_t> classes,
                                                 Bytes target);

/// Trainers over which packs can be dealt: all, or those of a stage.
[[nodiscard]] std::uint32_t most_senders(const Scenario& scenario);

}  // namespace refit
