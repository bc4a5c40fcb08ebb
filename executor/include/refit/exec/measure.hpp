// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "refit/exec/transport.hpp"
#include "refit/result.hpp"
#include "refit/units.hpp"

namespace refit::exec {

/// How often to run a plan.
struct Repeats {
    std::uint32_t warm_up = 1;
    std::uint32_t runs = 5;  ///< Range: >= 1.
    std::function<Result<void>()> between{};  ///< Is called before each run that counts, where there is one.
};

/// Of several times. Range: min <= median <= p95 <= max.
struct Spread {
    Seconds min;
    Seconds median;
    Seconds p95;  ///< The least that 95 % of them do not exceed.
    Seconds max;
};
/// Pre: there is one.
[[nodiscard]] Spread spread_of(std::vector<Seconds> times);

/// A refit that ran, and was verified.
struct Measurement {
    std::vector<Seconds> runs;  ///< In order.
    Spread seconds;
    std::vector<Spread> stages;    ///< By stage of the plan: of its slowest rank in each run.
    std::vector<RankTimes> ranks;  ///< Medians over the runs.
    std::uint64_t elements = 0;    ///< Compared.
    std::vector<RankRecord> records;
};

/// Fills, runs, verifies the last run, and flips. Errors: those of the transport; "not-verified" with the
/// mismatch; a rank that left no record is named. After a failure says whether the old weights stand:
/// "old-weights-lost" is a fault more where they do not.
[[nodiscard]] Result<Measurement> measure(Transport& transport, const Job& job, const Repeats& repeats);

}  // namespace refit::exec
