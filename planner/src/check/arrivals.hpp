// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "class_facts.hpp"
#include "fault_log.hpp"
#include "region.hpp"

namespace refit::proof {

/// What reaches each generator of one slice, over the whole plan.
class Arrivals {
public:
    Arrivals(const ClassFacts& facts, std::uint32_t slice, std::uint32_t train_gpus, std::size_t generators)
        : facts_{facts}, slice_{slice}, train_gpus_{train_gpus}, at_(generators) {}

    /// Registers a region that a stage moves; its number serves for `add`.
    [[nodiscard]] std::uint32_t region(std::size_t stage, const Region& region);
    [[nodiscard]] const Region& at(std::uint32_t number) const { return regions_.at(number); }
    /// A region reaches a rank, which may not want it if it only passes it on.
    void add(std::uint32_t rank, std::uint32_t number, bool is_passing = false);
    /// Regions reach a rank that is to have them.
    void add(std::uint32_t rank, std::span<const std::uint32_t> numbers);

    /// Compares what arrived with what is wanted; adds the bytes that were delivered, by generator.
    void prove(FaultLog& log, std::vector<std::uint64_t>& delivered_bytes);

private:
    void prove_shard(FaultLog& log, const Shard& shard, std::vector<std::uint64_t>& delivered_bytes);
    void report(FaultLog& log, std::uint32_t rank, const Comparison& comparison) const;
    [[nodiscard]] std::string stages_of(std::uint32_t rank, const Region& cell) const;

    const ClassFacts& facts_;
    std::uint32_t slice_;
    std::uint32_t train_gpus_;
    std::vector<Region> regions_;
    std::vector<std::size_t> stages_;  ///< By region.
    std::vector<std::vector<std::uint32_t>>
        at_;  ///< By generator: twice the region's number, plus one if passing.
};

}  // namespace refit::proof
