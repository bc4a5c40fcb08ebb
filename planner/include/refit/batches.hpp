// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "refit/cluster.hpp"
#include "refit/plan.hpp"

namespace refit {

/// Messages between two ranks each, by columns, as an executor posts them: a send on one rank, a receive on
/// the other. Invariant: the columns have equal length; a posting follows only an earlier one.
struct Postings {
    static constexpr std::uint32_t kNone = 0xffffffff;

    std::vector<std::uint32_t> source;
    std::vector<std::uint32_t> destination;
    std::vector<std::uint32_t> follows;  ///< The posting that has to be complete before, or kNone.

    [[nodiscard]] std::size_t size() const noexcept { return source.size(); }
    void add(std::uint32_t from, std::uint32_t to, std::uint32_t after = kNone);
    bool operator==(const Postings&) const = default;
};

/// The messages of a stage: its transfers once for each tensor, its relays once for each hop.
[[nodiscard]] Postings postings_of(const PlanStage& stage,
                                   std::span<const TransferBlock> blocks,
                                   const Cluster& cluster);

/// In which batch each posting goes. A rank posts its operations of a batch as one group, batch after batch;
/// it takes part in all of them, even where it has nothing to do in one.
struct Batches {
    std::uint32_t count = 0;
    std::vector<std::uint32_t> batch;  ///< By posting: for both ends the same.
    bool operator==(const Batches&) const = default;
};

/// Batches of at most `limit` operations, sends and receives together, of any rank. A posting goes into the
/// first batch after the one that it follows where both ends have room; pairs of ranks take turns. Same
/// input, same batches. Where nothing follows anything and no rank sends to itself, there are fewer than
/// twice as many as the busiest rank needs. Range: limit >= 2, since a rank may send to itself. Errors:
/// std::logic_error below.
[[nodiscard]] Batches make_batches(const Postings& postings, std::uint32_t limit);

/// One end of a posting.
struct Operation {
    std::uint32_t posting = 0;
    bool is_send = false;
    bool operator==(const Operation&) const = default;
};

/// What one rank posts, batch by batch. Invariant: as many entries as there are batches, whatever the rank.
[[nodiscard]] std::vector<std::vector<Operation>> operations_of(const Postings& postings,
                                                                const Batches& batches,
                                                                std::uint32_t rank);

}  // namespace refit
