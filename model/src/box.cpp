// SPDX-License-Identifier: Apache-2.0
#include "refit/box.hpp"

#include <algorithm>
#include <stdexcept>

namespace refit {

Box Box::whole(std::span<const std::uint64_t> shape) {
    if (shape.empty() || shape.size() > kMostAxes) {
        throw std::logic_error{"Box::whole: 1 to 5 axes"};
    }
    Box box;
    box.count_ = shape.size();
    std::ranges::transform(shape, box.axes_.begin(), [](std::uint64_t extent) { return Interval{0, extent}; });
    return box;
}

Box Box::with(std::size_t axis, Interval interval) const {
    if (axis >= count_ || interval.begin > interval.end) {
        throw std::logic_error{"Box::with: no such axis, or an interval that ends before it begins"};
    }
    Box box = *this;
    box.axes_[axis] = interval;
    return box;
}

std::uint64_t Box::volume() const noexcept {
    std::uint64_t volume = 1;
    for (const auto& axis : axes()) {
        volume *= axis.length();
    }
    return volume;
}

std::optional<Box> intersection(const Box& a, const Box& b) {
    if (a.axes().size() != b.axes().size()) {
        throw std::logic_error{"intersection: boxes of different rank"};
    }
    Box common = a;
    for (std::size_t axis = 0; axis < a.axes().size(); ++axis) {
        const Interval both{std::max(a.axes()[axis].begin, b.axes()[axis].begin),
                            std::min(a.axes()[axis].end, b.axes()[axis].end)};
        if (both.begin >= both.end) {
            return std::nullopt;
        }
        common = common.with(axis, both);
    }
    return common;
}

}  // namespace refit
