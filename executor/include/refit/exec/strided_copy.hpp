// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "refit/box.hpp"

namespace refit::exec {

/// Runs of bytes to be copied between two places in memory, `count` along each of up to four axes, outermost
/// first. Unit: byte. Invariant: axes of one step are left out; the runs are as long as both sides allow.
struct StridedCopy {
    static constexpr std::size_t kMostAxes = Box::kMostAxes;

    std::uint64_t source = 0;       ///< Offset of the first byte.
    std::uint64_t destination = 0;  ///< Offset of the first byte.
    std::uint64_t run = 0;
    std::size_t axes = 0;
    std::array<std::uint64_t, kMostAxes> count{};
    std::array<std::uint64_t, kMostAxes> source_step{};
    std::array<std::uint64_t, kMostAxes> destination_step{};

    [[nodiscard]] std::uint64_t bytes() const noexcept;
    /// From the first byte that is read to the last.
    [[nodiscard]] std::uint64_t source_span() const noexcept;
    bool operator==(const StridedCopy&) const = default;
};

/// Copies `box` from where `from` is stored row-major to where `to` is. Pre: box lies inside both and is not
/// empty.
[[nodiscard]] StridedCopy copy_of(const Box& box,
                                  const Box& from,
                                  const Box& to,
                                  std::uint64_t element_bytes);

/// The same in pieces, each of which reads no more than `span` bytes of source, or is a single run. In source
/// order.
void append_pieces(const StridedCopy& copy, std::uint64_t span, std::vector<StridedCopy>& pieces);

/// Does it. `streams`: with stores that bypass the caches, where the machine has them and runs are long
/// enough; the caller orders them with `finish_streams` before others read.
void run_copy(const StridedCopy& copy, const std::byte* source, std::byte* destination, bool streams);
void finish_streams() noexcept;

}  // namespace refit::exec
