// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "refit/result.hpp"

namespace refit {

struct Scenario;

/// Ranks of a job, trainers first, that a refit goes on without.
/// Invariant: both lists ascend, and have no rank in common.
struct Losses {
    std::vector<std::uint32_t> lost;  ///< Gone.
    /// Healthy generators of an engine, or of engines that share experts, that lost a rank: they serve no
    /// more, so nothing is sent to them or over them.
    std::vector<std::uint32_t> idle;

    [[nodiscard]] bool empty() const noexcept { return lost.empty(); }
    /// Whether the rank takes no part.
    [[nodiscard]] bool is_absent(std::uint32_t rank) const noexcept;
    /// All who take no part, ascending.
    [[nodiscard]] std::vector<std::uint32_t> absent() const;
    bool operator==(const Losses&) const = default;
};

/// The ranks that take part, ascending, out of `ranks`.
[[nodiscard]] std::vector<std::uint32_t> survivors(const Losses& losses, std::uint32_t ranks);

/// Reads "3,7-9,trainer:2,generation:0-7": ranks of the job, or of a side; ascending, each once. Empty text:
/// none. Errors, all at once: kInvalidInput where an item is no rank or run of them, or names ranks that the
/// job has not.
[[nodiscard]] Result<std::vector<std::uint32_t>> parse_ranks(std::string_view text,
                                                             std::uint32_t train_gpus,
                                                             std::uint32_t generate_gpus);
/// "3,7-9". Pre: ascending.
[[nodiscard]] std::string ranks_text(const std::vector<std::uint32_t>& ranks);

/// Who takes no part in a scenario's refit without these ranks. A trainer's peers go on: what it gave others
/// give that hold the same. A lost generator takes its replica (`replica_gpus`) with it. Pre: ascending ranks
/// of the job. Errors, all at once: kInfeasible where elements have no holder left, by stage and by who held
/// them, and where no replica is left; each offers the most of these ranks that can be left out, where any
/// can. Cost: in classes, stages and shards.
[[nodiscard]] Result<Losses> losses_of(const Scenario& scenario, std::vector<std::uint32_t> lost);

}  // namespace refit
