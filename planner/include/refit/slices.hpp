// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "refit/plan.hpp"
#include "refit/workload.hpp"

namespace refit {

/// Bytes that the same ranks hold and the same ranks want.
struct Slice {
    std::uint32_t holders = 0;    ///< Index of a rank set.
    std::uint32_t receivers = 0;  ///< Index of a rank set.
    std::uint64_t bytes = 0;
    bool operator==(const Slice&) const = default;
};

/// What a refit has to move, as slices: however many tensors there are, one for each pair of a set of holders and a set
/// of receivers. Ranks are numbered over the job.
///
/// Invariant: no two slices have the same holders and receivers; holders are never empty, receivers never; no rank is
/// in both sets of a slice.
class SliceTable {
public:
    /// Each destination box of the workload, by who holds it. Cost: in classes, stages and shards.
    [[nodiscard]] static SliceTable make(const Workload& workload, std::uint32_t train_gpus);
    /// Of bytes that are nothing but bytes: one parameter, of one axis. Slices of equal sets are merged.
    [[nodiscard]] static SliceTable of(std::vector<std::vector<std::uint32_t>> rank_sets, const std::vector<Slice>& slices);

    [[nodiscard]] std::span<const Slice> slices() const noexcept { return slices_; }
    /// Ascending ranks. Invariant: no two sets are equal.
    [[nodiscard]] const std::vector<std::uint32_t>& rank_set(std::uint32_t index) const { return rank_sets_.at(index); }
    [[nodiscard]] std::size_t rank_sets() const noexcept { return rank_sets_.size(); }
    /// Of which tensors a slice consists.
    [[nodiscard]] std::span<const MessagePart> parts(std::size_t slice) const;
    /// Bytes of one element, by parameter.
    [[nodiscard]] std::span<const std::uint64_t> element_bytes() const noexcept { return element_bytes_; }

private:
    std::uint32_t intern(std::vector<std::uint32_t> ranks);
    std::uint32_t slice_of(std::uint32_t holders, std::uint32_t receivers);
    void add_class(const Workload& workload, std::uint32_t index, std::uint32_t train_gpus);

    struct SetHash {
        [[nodiscard]] std::size_t operator()(const std::vector<std::uint32_t>& ranks) const noexcept;
    };

    std::vector<std::vector<std::uint32_t>> rank_sets_;
    std::unordered_map<std::vector<std::uint32_t>, std::uint32_t, SetHash> known_sets_;
    std::unordered_map<std::uint64_t, std::uint32_t> known_slices_;
    std::vector<Slice> slices_;
    std::vector<std::vector<MessagePart>> parts_;
    std::vector<std::uint64_t> element_bytes_;
};

}  // namespace refit
