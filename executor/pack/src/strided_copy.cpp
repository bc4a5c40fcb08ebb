// SPDX-License-Identifier: Apache-2.0
#include "refit/strided_copy.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

namespace refit {
namespace {

std::span<const CopyAxis> axes_of(const StridedCopy& copy) {
    return {copy.axes.data(), copy.count};
}

void prepend(StridedCopy& copy, const CopyAxis& axis) {
    std::move_backward(copy.axes.begin(),
                       copy.axes.begin() + static_cast<std::ptrdiff_t>(copy.count),
                       copy.axes.begin() + static_cast<std::ptrdiff_t>(copy.count) + 1);
    copy.axes.front() = axis;
    ++copy.count;
}

/// Whether an axis goes on exactly where `inner`, repeated to its end, stops.
bool continues(const CopyAxis& axis, const CopyAxis& inner) {
    return axis.source_stride == inner.extent * inner.source_stride &&
           axis.destination_stride == inner.extent * inner.destination_stride;
}

void copy_axes(const std::byte* source,
               std::byte* destination,
               std::uint64_t run,
               std::span<const CopyAxis> axes) {
    if (axes.empty()) {
        std::memcpy(destination, source, run);
        return;
    }
    const CopyAxis& axis = axes.front();
    for (std::uint64_t index = 0; index < axis.extent; ++index) {
        copy_axes(source + index * axis.source_stride,
                  destination + index * axis.destination_stride,
                  run,
                  axes.subspan(1));
    }
}

}  // namespace

std::uint64_t StridedCopy::rows() const noexcept {
    std::uint64_t rows = 1;
    for (const CopyAxis& axis : axes_of(*this)) {
        rows *= axis.extent;
    }
    return rows;
}

StridedCopy simplified(const StridedCopy& copy) {
    StridedCopy result{.source = copy.source, .destination = copy.destination, .run = copy.run};
    for (std::size_t left = copy.count; left > 0; --left) {
        const CopyAxis& axis = copy.axes.at(left - 1);
        if (axis.extent == 1) {
            continue;
        }
        if (result.count == 0 && axis.source_stride == result.run && axis.destination_stride == result.run) {
            result.run *= axis.extent;
        } else if (result.count > 0 && continues(axis, result.axes.front())) {
            result.axes.front().extent *= axis.extent;
        } else {
            prepend(result, axis);
        }
    }
    return result;
}

std::uint32_t access_width(const StridedCopy& copy) noexcept {
    std::uint64_t bits = copy.source | copy.destination | copy.run | 16U;
    for (const CopyAxis& axis : axes_of(copy)) {
        bits |= axis.source_stride | axis.destination_stride;
    }
    return std::uint32_t{1} << std::countr_zero(bits);
}

void copy_runs(const StridedCopy& copy) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses of any device are kept as numbers.
    copy_axes(reinterpret_cast<const std::byte*>(copy.source),
              reinterpret_cast<std::byte*>(copy.destination),  // NOLINT(performance-no-int-to-ptr)
              copy.run,
              axes_of(copy));
}

}  // namespace refit
