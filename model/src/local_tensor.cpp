// SPDX-License-Identifier: Apache-2.0
#include "refit/local_tensor.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace refit {
namespace {

void require(bool holds, const char* what) {
    if (!holds) {
        throw std::logic_error{what};
    }
}

std::vector<std::uint64_t> row_major_strides(std::span<const std::uint64_t> shape) {
    std::vector<std::uint64_t> strides(shape.size(), 1);
    for (std::size_t axis = shape.size(); axis-- > 1;) {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    return strides;
}

/// Whether `next` goes on where `piece` ends along local axis `axis`, so that both are one piece.
bool continues(const Piece& piece, const Piece& next, std::size_t axis) {
    const auto along = piece.axes[axis];
    if (piece.input != next.input || piece.axes != next.axes || along < 0) {
        return false;
    }
    for (std::size_t i = 0; i < piece.origin.size(); ++i) {
        if (next.origin[i] != piece.origin[i] + (i == axis ? piece.extent(axis) : 0)) {
            return false;
        }
    }
    const auto input_axis = static_cast<std::size_t>(along);
    const auto& interval = piece.box.axes()[input_axis];
    const auto& after = next.box.axes()[input_axis];
    return interval.end == after.begin && piece.box == next.box.with(input_axis, interval);
}

/// Joins neighbours that are one piece along `axis`.
std::vector<Piece> joined(std::vector<Piece> pieces, std::size_t axis) {
    std::vector<Piece> result;
    for (auto& piece : pieces) {
        const auto before = std::find_if(result.rbegin(), result.rend(), [&](const Piece& earlier) {
            return continues(earlier, piece, axis);
        });
        if (before == result.rend()) {
            result.push_back(std::move(piece));
            continue;
        }
        const auto input_axis = static_cast<std::size_t>(before->axes[axis]);
        before->box = before->box.with(input_axis, {before->box.axes()[input_axis].begin, piece.box.axes()[input_axis].end});
    }
    return result;
}

}  // namespace

std::uint64_t Piece::extent(std::size_t local_axis) const {
    const auto axis = axes.at(local_axis);
    return axis < 0 ? 1 : box.axes()[static_cast<std::size_t>(axis)].length();
}

LocalTensor::LocalTensor(std::vector<std::uint64_t> shape, std::vector<Piece> pieces)
    : shape_{std::move(shape)}, pieces_{std::move(pieces)} {}

LocalTensor LocalTensor::whole(std::uint32_t input, std::span<const std::uint64_t> shape) {
    std::vector<std::int8_t> axes(shape.size());
    std::iota(axes.begin(), axes.end(), std::int8_t{0});
    Piece piece{input, Box::whole(shape), std::vector<std::uint64_t>(shape.size(), 0), std::move(axes)};
    std::vector<Piece> pieces;
    if (piece.box.volume() > 0) {
        pieces.push_back(std::move(piece));
    }
    return {{shape.begin(), shape.end()}, std::move(pieces)};
}

LocalTensor LocalTensor::padding(std::vector<std::uint64_t> shape) { return {std::move(shape), {}}; }

LocalTensor LocalTensor::concat(std::span<const LocalTensor> parts, std::size_t axis) {
    require(!parts.empty() && axis < parts.front().shape_.size(), "LocalTensor::concat: no parts, or no such axis");
    auto shape = parts.front().shape_;
    shape[axis] = 0;
    std::vector<Piece> pieces;
    for (const auto& part : parts) {
        for (auto piece : part.pieces_) {
            piece.origin[axis] += shape[axis];
            pieces.push_back(std::move(piece));
        }
        shape[axis] += part.shape_.at(axis);
        auto expected = shape;
        expected[axis] = part.shape_[axis];
        require(part.shape_ == expected, "LocalTensor::concat: shapes differ off the axis");
    }
    return {std::move(shape), joined(std::move(pieces), axis)};
}

LocalTensor LocalTensor::stack(std::span<const LocalTensor> parts) {
    require(!parts.empty(), "LocalTensor::stack: no parts");
    auto shape = parts.front().shape_;
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        require(parts[i].shape_ == shape, "LocalTensor::stack: shapes differ");
        for (auto piece : parts[i].pieces_) {
            piece.origin.insert(piece.origin.begin(), i);
            piece.axes.insert(piece.axes.begin(), std::int8_t{-1});
            pieces.push_back(std::move(piece));
        }
    }
    shape.insert(shape.begin(), parts.size());
    return {std::move(shape), std::move(pieces)};
}

std::uint64_t LocalTensor::elements() const noexcept {
    return std::accumulate(shape_.begin(), shape_.end(), std::uint64_t{1}, std::multiplies<>{});
}

LocalTensor LocalTensor::slice(std::size_t axis, Interval interval) const {
    require(axis < shape_.size() && interval.begin <= interval.end && interval.end <= shape_[axis],
            "LocalTensor::slice: outside the tensor");
    auto shape = shape_;
    shape[axis] = interval.length();
    std::vector<Piece> pieces;
    for (const auto& piece : pieces_) {
        const auto begin = std::max(piece.origin[axis], interval.begin);
        const auto end = std::min(piece.origin[axis] + piece.extent(axis), interval.end);
        if (begin >= end) {
            continue;
        }
        auto cut = piece;
        if (piece.axes[axis] >= 0) {
            const auto input_axis = static_cast<std::size_t>(piece.axes[axis]);
            const auto first = piece.box.axes()[input_axis].begin + (begin - piece.origin[axis]);
            cut.box = piece.box.with(input_axis, {first, first + (end - begin)});
        }
        cut.origin[axis] = begin - interval.begin;
        pieces.push_back(std::move(cut));
    }
    return {std::move(shape), std::move(pieces)};
}

LocalTensor LocalTensor::part(std::size_t axis, std::uint64_t ways, std::uint64_t index) const {
    require(axis < shape_.size() && ways > 0 && index < ways && shape_[axis] % ways == 0, "LocalTensor::part: does not divide");
    const auto step = shape_[axis] / ways;
    return slice(axis, {step * index, step * (index + 1)});
}

LocalTensor LocalTensor::transposed(std::size_t a, std::size_t b) const {
    require(a < shape_.size() && b < shape_.size(), "LocalTensor::transposed: no such axis");
    auto result = *this;
    std::swap(result.shape_[a], result.shape_[b]);
    for (auto& piece : result.pieces_) {
        std::swap(piece.origin[a], piece.origin[b]);
        std::swap(piece.axes[a], piece.axes[b]);
    }
    return result;
}

LocalTensor LocalTensor::padded(std::size_t axis, std::uint64_t extent) const {
    require(axis < shape_.size() && extent >= shape_[axis], "LocalTensor::padded: would cut");
    auto result = *this;
    result.shape_[axis] = extent;
    return result;
}

LocalTensor LocalTensor::without_axis(std::size_t axis) const {
    require(axis < shape_.size() && shape_[axis] == 1, "LocalTensor::without_axis: extent is not 1");
    auto result = *this;
    const auto at = static_cast<std::ptrdiff_t>(axis);
    result.shape_.erase(result.shape_.begin() + at);
    for (auto& piece : result.pieces_) {
        piece.origin.erase(piece.origin.begin() + at);
        piece.axes.erase(piece.axes.begin() + at);
    }
    return result;
}

std::vector<Run> LocalTensor::runs(std::span<const std::vector<std::uint64_t>> input_shapes) const {
    struct Origin {
        std::int64_t input = -1;
        std::uint64_t element = 0;
    };
    std::vector<Origin> origins(elements());
    const auto strides = row_major_strides(shape_);
    for (const auto& piece : pieces_) {
        const auto input_strides = row_major_strides(input_shapes[piece.input]);
        std::uint64_t first = 0;
        for (std::size_t axis = 0; axis < input_strides.size(); ++axis) {
            first += piece.box.axes()[axis].begin * input_strides[axis];
        }
        const std::function<void(std::size_t, std::uint64_t, std::uint64_t)> fill = [&](std::size_t axis, std::uint64_t local, std::uint64_t element) {
            if (axis == shape_.size()) {
                origins[local] = {static_cast<std::int64_t>(piece.input), element};
                return;
            }
            const auto step = piece.axes[axis] < 0 ? 0 : input_strides[static_cast<std::size_t>(piece.axes[axis])];
            for (std::uint64_t i = 0; i < piece.extent(axis); ++i) {
                fill(axis + 1, local + (piece.origin[axis] + i) * strides[axis], element + i * step);
            }
        };
        fill(0, 0, first);
    }
    std::vector<Run> runs;
    for (const auto& origin : origins) {
        const bool goes_on = !runs.empty() && runs.back().input == origin.input &&
                             (origin.input < 0 || runs.back().start + runs.back().count == origin.element);
        if (goes_on) {
            ++runs.back().count;
        } else {
            runs.push_back({origin.input, origin.element, 1});
        }
    }
    return runs;
}

}  // namespace refit
