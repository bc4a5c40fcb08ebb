// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "refit/memory.hpp"

namespace refit {

/// What one memory must hold at once: a GPU's, or a host's.
struct MemoryDemand {
    std::string where;  ///< "generation GPU", "host".
    Bytes capacity;
    std::vector<Bytes> resident;  ///< In it before the refit: weights, caches, communicators.
    Bytes buffer;                 ///< Of what the refit adds: `buffers` times this.
    std::uint64_t buffers = 1;

    [[nodiscard]] Bytes needed() const;
    [[nodiscard]] bool fits() const { return needed() <= capacity; }
    /// The largest buffer with which it fits; nothing where not even an empty one does.
    [[nodiscard]] std::optional<Bytes> largest_buffer() const;
};

/// A demand that does not fit, with its numbers. Pre: it does not fit.
[[nodiscard]] Fault overflow_fault(const MemoryDemand& demand);

/// How large a plan's packs are, and how large they may be. Ratios are NRL_REFIT_BUFFER_MEMORY_RATIO, in
/// steps of 0.0001.
struct PackSizes {
    Bytes train_target;     ///< What trainers aim at.
    Bytes generate_target;  ///< What receivers expect them to aim at.
    bool agree = true;  ///< Both close every pack at the same tensor; else they wait for each other for ever.
    Bytes largest_tensor;
    /// From which on no tensor is larger than a pack aims to be, on either side; below, such a tensor fills a
    /// pack alone. Nothing where packs are capped below it.
    std::optional<double> smallest_ratio;
    std::optional<double>
        largest_ratio;  ///< With which it still fits beside the weights; nothing where none does.
    std::optional<double>
        agreeing_ratio;  ///< The smallest above the present one with which both sides agree and it fits.
    bool operator==(const PackSizes&) const = default;
};

/// Nothing where the plan has no packs. Cost: in export runs and packs, some forty times.
[[nodiscard]] std::optional<PackSizes> pack_sizes(const Plan& plan,
                                                  const Scenario& scenario,
                                                  const Workload& workload);

/// The most bytes of weights on any GPU of each side, without padding.
[[nodiscard]] PeakBytes weight_bytes(const Workload& workload);

/// What a user should know before the run: memory that overflows even if a GPU holds nothing but the weights,
/// and pack sizes that disagree, each with the setting that cures it where one does.
[[nodiscard]] Faults memory_warnings(const Plan& plan, const Scenario& scenario, const Workload& workload);

}  // namespace refit
