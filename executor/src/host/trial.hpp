// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "copies.hpp"
#include "refit/exec/host_rates.hpp"
#include "refit/exec/rank_storage.hpp"
#include "refit/result.hpp"

namespace refit::exec::host {

/// Copies between givers and takers, in memory that was touched: no run pays for new pages.
class Trial {
public:
    /// Errors: those of an allocation.
    [[nodiscard]] static Result<Trial> make(const std::vector<program::RankProgram>& programs,
                                            std::uint32_t threads);
    /// Errors: those of a run.
    [[nodiscard]] Result<Seconds> run() const;
    /// That one run moves.
    [[nodiscard]] std::uint64_t bytes() const noexcept;

private:
    std::vector<RankStorage> storage_;
    Work work_;
    std::uint32_t threads_ = 1;
};

inline constexpr std::uint32_t kRanks = 8;     ///< On each side.
inline constexpr std::uint32_t kFewRanks = 2;  ///< For runs that are too long for more.
inline constexpr std::uint32_t kReaders = 8;   ///< Of the same source, where it is repeated.

/// Of a matrix with such runs.
[[nodiscard]] constexpr std::uint64_t least_footprint(CopyPattern pattern, std::uint64_t run) noexcept {
    return kFewRanks * kFewRanks * run * (pattern == CopyPattern::kRepeat ? 1 + kReaders : 2);
}

/// A matrix whose rows, or columns, go from givers to takers of its columns, or rows; or whose halves of rows
/// go to 8 takers each. Pre: footprint >= least_footprint(pattern, run).
[[nodiscard]] std::vector<program::RankProgram> matrix(CopyPattern pattern,
                                                       std::uint64_t run,
                                                       std::uint64_t footprint);

/// `waves` waves of `copies` messages of 64 bytes from each giver.
[[nodiscard]] std::vector<program::RankProgram> small_messages(std::uint32_t waves, std::uint32_t copies);

}  // namespace refit::exec::host
