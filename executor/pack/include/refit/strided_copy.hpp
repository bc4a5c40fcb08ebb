// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace refit {

/// One axis of a box of bytes, and how far apart its entries lie on both sides.
/// Unit: strides in bytes.
struct CopyAxis {
    std::uint64_t extent = 1;
    std::uint64_t source_stride = 0;
    std::uint64_t destination_stride = 0;
    bool operator==(const CopyAxis&) const = default;
};

/// A box of bytes to copy: `run` bytes that are contiguous on both sides, repeated over axes, the outermost
/// first. A pack has a dense destination, an unpack a dense source. The addresses are those of whatever
/// device copies.
struct StridedCopy {
    static constexpr std::size_t kMostAxes = 5;

    std::uint64_t source = 0;       ///< Address of the first byte.
    std::uint64_t destination = 0;  ///< Address of the first byte.
    std::uint64_t run = 0;          ///< Bytes.
    std::array<CopyAxis, kMostAxes> axes{};
    std::size_t count = 0;  ///< Of axes in use. Range: [0, kMostAxes].

    [[nodiscard]] std::uint64_t rows() const noexcept;
    [[nodiscard]] std::uint64_t bytes() const noexcept { return run * rows(); }
    bool operator==(const StridedCopy&) const = default;
};

/// The same copy with fewest axes: without those of extent 1, and with what is contiguous on both sides
/// joined.
[[nodiscard]] StridedCopy simplified(const StridedCopy& copy);

/// The widest access, in bytes, that addresses, run and strides allow. Range: 1, 2, 4, 8 or 16.
[[nodiscard]] std::uint32_t access_width(const StridedCopy& copy) noexcept;

/// Does the copy on the host, run by run. Pre: both sides are host memory and do not overlap.
void copy_runs(const StridedCopy& copy);

}  // namespace refit
