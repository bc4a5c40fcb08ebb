// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "refit/exec/transport.hpp"
#include "refit/program.hpp"
#include "refit/result.hpp"

namespace refit::exec {

/// What one rank's buffers take: sources, two destinations, scratch.
[[nodiscard]] Bytes bytes_needed(const program::RankProgram& program);

/// The record of a rank, as far as its program tells: rank, digest, and what it sends and receives. What it
/// gives to a group counts once for each other member.
[[nodiscard]] RankRecord record_of(const program::RankProgram& program);

/// Gives pages back.
struct Unmap {
    std::size_t bytes = 0;
    void operator()(std::byte* memory) const noexcept;
};

/// A rank's buffers in host memory, page-aligned.
class RankStorage {
public:
    /// Errors: kInfeasible, "out-of-memory", naming the rank and the bytes.
    [[nodiscard]] static Result<RankStorage> allocate(const program::RankProgram& program);

    /// Of the destinations: the shadow, which a refit writes.
    [[nodiscard]] std::byte* base(program::Arena arena) const noexcept;
    /// The destinations that are served.
    [[nodiscard]] std::byte* served() const noexcept { return arenas_[kServed].get(); }
    /// Exchanges shadow and served.
    void flip() noexcept;

private:
    using Memory = std::unique_ptr<std::byte, Unmap>;
    static constexpr std::size_t kServed = program::kArenas;

    std::array<Memory, program::kArenas + 1> arenas_;
};

/// Writes the values of a version to the sources of a rank, and their complement to its shadow destinations.
void fill(const program::RankProgram& program,
          const Workload& workload,
          std::uint64_t version,
          const RankStorage& storage);
/// The same with elements of a source in place of made-up values.
void fill(const program::RankProgram& program,
          const Workload& workload,
          const TensorSource& data,
          const RankStorage& storage);
/// Writes the values of a version to the served destinations: what they hold before a refit.
void fill_served(const program::RankProgram& program,
                 const Workload& workload,
                 std::uint64_t version,
                 const RankStorage& storage);

/// What comparing one rank's destinations found.
struct Compared {
    RankRecord record;
    std::optional<Mismatch> mismatch;
};
/// Compares every element of the shadow destinations with the values of a version.
[[nodiscard]] Compared compare(const program::RankProgram& program,
                               const Workload& workload,
                               std::uint64_t version,
                               const RankStorage& storage);
/// The same with elements of a source.
[[nodiscard]] Compared compare(const program::RankProgram& program,
                               const Workload& workload,
                               const TensorSource& data,
                               const RankStorage& storage);
/// Whether the served destinations hold the values of a version.
[[nodiscard]] bool serves(const program::RankProgram& program,
                          const Workload& workload,
                          std::uint64_t version,
                          const RankStorage& storage);

/// Says which operation should have written a region's element, and which rank should have given it.
/// `at`: its index along each axis of the tensor.
void blame(const program::RankProgram& program,
           std::uint32_t region,
           std::span<const std::uint64_t> at,
           Mismatch& mismatch);

}  // namespace refit::exec
