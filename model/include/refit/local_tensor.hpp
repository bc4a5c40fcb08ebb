// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "refit/box.hpp"

namespace refit {

/// A box of one input tensor and where it lies in a rank's local tensor.
/// Shape: `origin` and `axes` have one entry a local axis. An input axis that no local axis follows has extent 1.
struct Piece {
    std::uint32_t input = 0;            ///< Index of the input tensor.
    Box box;                            ///< Which of its elements.
    std::vector<std::uint64_t> origin;  ///< Local index of the box's first element.
    std::vector<std::int8_t> axes;      ///< Input axis that runs along each local axis; -1: none, extent 1.
    bool operator==(const Piece&) const = default;

    /// Elements along a local axis.
    [[nodiscard]] std::uint64_t extent(std::size_t local_axis) const;
};

/// The next `count` local elements, row-major, are elements `start` … of input tensor `input`, row-major;
/// input -1 is padding.
struct Run {
    std::int64_t input = -1;
    std::uint64_t start = 0;
    std::uint64_t count = 0;
    bool operator==(const Run&) const = default;
};

/// A tensor as one rank stores it, put together from boxes of logical tensors; what no piece covers is padding.
/// The frameworks' layouts are compositions of few operations on such tensors, whose cost is in pieces, not in elements.
///
/// Invariant: pieces lie inside the shape and do not overlap locally.
class LocalTensor {
public:
    /// All of one input tensor. Pre: 1 to Box::kMostAxes axes.
    [[nodiscard]] static LocalTensor whole(std::uint32_t input, std::span<const std::uint64_t> shape);
    /// Nothing but padding.
    [[nodiscard]] static LocalTensor padding(std::vector<std::uint64_t> shape);
    /// The parts one after the other along `axis`. Pre: at least one; equal shapes but for `axis`.
    [[nodiscard]] static LocalTensor concat(std::span<const LocalTensor> parts, std::size_t axis);
    /// The parts as slices of a new first axis. Pre: at least one; equal shapes.
    [[nodiscard]] static LocalTensor stack(std::span<const LocalTensor> parts);

    [[nodiscard]] const std::vector<std::uint64_t>& shape() const& noexcept { return shape_; }
    [[nodiscard]] const std::vector<Piece>& pieces() const& noexcept { return pieces_; }
    /// Elements, padding included.
    [[nodiscard]] std::uint64_t elements() const noexcept;

    /// Indices [begin, end) of `axis`. Pre: inside the shape.
    [[nodiscard]] LocalTensor slice(std::size_t axis, Interval interval) const;
    /// Part `index` of `ways` equal parts of `axis`. Pre: `ways` divides it.
    [[nodiscard]] LocalTensor part(std::size_t axis, std::uint64_t ways, std::uint64_t index) const;
    /// Two axes exchanged.
    [[nodiscard]] LocalTensor transposed(std::size_t a, std::size_t b) const;
    /// Padding added at the end of `axis`. Pre: `extent` is no less than the present one.
    [[nodiscard]] LocalTensor padded(std::size_t axis, std::uint64_t extent) const;
    /// Without `axis`, which has extent 1.
    [[nodiscard]] LocalTensor without_axis(std::size_t axis) const;

    /// Where every local element comes from, in local row-major order, runs as long as they can be.
    /// `input_shapes` by input index. Cost: in elements.
    [[nodiscard]] std::vector<Run> runs(std::span<const std::vector<std::uint64_t>> input_shapes) const;

private:
    LocalTensor(std::vector<std::uint64_t> shape, std::vector<Piece> pieces);

    std::vector<std::uint64_t> shape_;
    std::vector<Piece> pieces_;
};

}  // namespace refit
