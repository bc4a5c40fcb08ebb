// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "refit/workload.hpp"

namespace refit::proof {

/// Who holds and who wants which shard of a class, by rank of the job.
class ClassFacts {
public:
    static constexpr std::uint32_t kNone = 0xffffffff;

    ClassFacts(const Workload& workload, std::uint32_t index, std::uint32_t train_gpus);

    [[nodiscard]] std::uint32_t index() const noexcept { return index_; }
    [[nodiscard]] const WorkloadClass& entry() const noexcept { return entry_; }
    [[nodiscard]] std::uint32_t train_stage_of(std::uint32_t rank) const noexcept {
        return rank / trainers_per_stage_;
    }
    /// Shard of the source that a rank holds of a slice from the beginning, or kNone.
    [[nodiscard]] std::uint32_t held_shard(std::uint32_t rank, std::uint32_t slice) const;
    /// Whether it holds all of a box of it.
    [[nodiscard]] bool holds(std::uint32_t rank, std::uint32_t slice, const Box& box) const;
    /// Shard of the slice's destination that a rank wants, or kNone.
    [[nodiscard]] std::uint32_t wanted_shard(std::uint32_t rank, std::uint32_t slice) const;
    [[nodiscard]] const Distribution& destination(std::uint32_t slice) const;
    [[nodiscard]] bool has_replicas(std::uint32_t slice) const;
    /// Slices from a trainer stage, in the order of generator stages.
    [[nodiscard]] std::vector<std::uint32_t> slices_from(std::uint32_t train_stage) const;

private:
    const WorkloadClass& entry_;
    std::uint32_t index_;
    std::uint32_t train_stages_;
    std::uint32_t trainers_per_stage_;
    std::uint32_t train_gpus_;
    std::vector<std::uint32_t> held_;                 ///< By trainer within its stage.
    std::vector<std::vector<std::uint32_t>> wanted_;  ///< By generator stage and generator.
};

}  // namespace refit::proof
