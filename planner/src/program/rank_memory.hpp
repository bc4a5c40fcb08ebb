// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "refit/program.hpp"
#include "refit/workload.hpp"

namespace refit::program {

/// To what end a rank takes a part.
struct Use {
    bool is_kept = false;
    bool serves_copies = false;
};

/// What one rank holds and wants, while its program is made.
class RankMemory {
public:
    RankMemory(const Workload& workload, std::uint32_t train_gpus, std::uint32_t rank);

    /// Where the elements of a part lie that the rank gives in a wave. Errors: std::logic_error where it has
    /// not all.
    void give(const Part& part, std::uint32_t index, std::uint32_t wave, std::vector<Landing>& landings);
    /// Where the elements of a part are put: those that the rank wants in their place, or in that of a copy
    /// if it may serve one; the rest, if it is kept, in scratch.
    void take(
        const Part& part, std::uint32_t index, std::uint32_t wave, Use use, std::vector<Landing>& landings);

    /// Gives every region its place; the regions, and the size of each arena. `waves`: of the program.
    [[nodiscard]] std::pair<std::vector<Region>, std::array<std::uint64_t, kArenas>> place(
        std::uint32_t waves) &&;

private:
    void add_destinations(std::uint32_t member);
    /// Region `box` of what the rank holds of a tensor before the refit.
    std::uint32_t source_region(const Tensor& tensor, std::size_t box);
    void place_scratch(std::uint64_t& size);

    const Workload& workload_;
    std::uint32_t rank_;
    bool is_trainer_;
    std::vector<const Shard*> held_;  ///< By class: what a trainer holds of tensors of its stage, or null.
    std::vector<Region> regions_;
    std::map<std::pair<Tensor, std::size_t>, std::uint32_t> sources_;
    std::map<Tensor, std::vector<std::uint32_t>> destinations_;
    std::map<Tensor, std::vector<std::uint32_t>> scratch_;
};

}  // namespace refit::program
