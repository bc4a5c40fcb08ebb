// SPDX-License-Identifier: Apache-2.0
#include "region.hpp"

#include <algorithm>
#include <array>

namespace refit::proof {
namespace {

constexpr std::size_t kMostAxes = Box::kMostAxes + 1;

/// Bounds of a region on an axis of the grid; the first are its tensors.
Interval bounds_of(const Region& region, std::size_t axis) {
    return axis == 0 ? region.tensors : region.box.axes()[axis - 1];
}

/// How often each list has a cell.
struct Cell {
    std::uint32_t wanted = 0;
    std::uint32_t written = 0;
    std::uint32_t passing = 0;
};

/// Cells between the bounds of all regions.
class Grid {
public:
    explicit Grid(std::size_t axes) : axes_{axes} {}

    void take_bounds(std::span<const Region> regions) {
        for (const auto& region : regions) {
            for (std::size_t axis = 0; axis < axes_; ++axis) {
                bounds_[axis].push_back(bounds_of(region, axis).begin);
                bounds_[axis].push_back(bounds_of(region, axis).end);
            }
        }
    }

    void make_cells() {
        std::size_t count = 1;
        for (std::size_t axis = axes_; axis-- > 0;) {
            std::ranges::sort(bounds_[axis]);
            bounds_[axis].erase(std::unique(bounds_[axis].begin(), bounds_[axis].end()), bounds_[axis].end());
            steps_[axis] = count;
            count *= bounds_[axis].size() - 1;
        }
        cells_.resize(count);
    }

    void mark(std::span<const Region> regions, std::uint32_t Cell::*list) {
        for (const auto& region : regions) {
            mark(region, list, 0, 0);
        }
    }

    [[nodiscard]] const std::vector<Cell>& cells() const noexcept { return cells_; }

    [[nodiscard]] Region region_at(std::size_t cell, const Region& any) const {
        Region region = any;
        for (std::size_t axis = 0; axis < axes_; ++axis) {
            const auto index = cell / steps_[axis] % (bounds_[axis].size() - 1);
            const Interval bounds{bounds_[axis][index], bounds_[axis][index + 1]};
            if (axis == 0) {
                region.tensors = bounds;
            } else {
                region.box = region.box.with(axis - 1, bounds);
            }
        }
        return region;
    }

private:
    [[nodiscard]] std::size_t index_of(std::size_t axis, std::uint64_t bound) const {
        return static_cast<std::size_t>(std::ranges::lower_bound(bounds_[axis], bound) -
                                        bounds_[axis].begin());
    }

    void mark(const Region& region, std::uint32_t Cell::*list, std::size_t axis, std::size_t first) {
        const auto bounds = bounds_of(region, axis);
        const auto end = index_of(axis, bounds.end);
        for (auto index = index_of(axis, bounds.begin); index < end; ++index) {
            const auto cell = first + index * steps_[axis];
            if (axis + 1 == axes_) {
                ++(cells_[cell].*list);
            } else {
                mark(region, list, axis + 1, cell);
            }
        }
    }

    std::size_t axes_;
    std::array<std::vector<std::uint64_t>, kMostAxes> bounds_;
    std::array<std::size_t, kMostAxes> steps_{};
    std::vector<Cell> cells_;
};

void note(std::optional<Region>& first, bool is_wrong, const Region& cell) {
    if (is_wrong && !first) {
        first = cell;
    }
}

}  // namespace

std::string describe(const Region& region) {
    const auto text = [](const Interval& interval) {
        return "[" + std::to_string(interval.begin) + ", " + std::to_string(interval.end) + ")";
    };
    std::string elements;
    for (const auto& axis : region.box.axes()) {
        elements += (elements.empty() ? "" : " x ") + text(axis);
    }
    return "tensors " + text(region.tensors) + ", elements " + elements;
}

Comparison compare(std::span<const Region> wanted,
                   std::span<const Region> written,
                   std::span<const Region> passing) {
    Comparison result;
    if (wanted.size() == 1 && written.size() == 1 && passing.empty() && wanted.front() == written.front()) {
        result.delivered = wanted.front().elements();
        return result;
    }
    const auto* any = !wanted.empty() ? wanted.data() : (!written.empty() ? written.data() : passing.data());
    if (any == nullptr) {
        return result;
    }
    Grid grid{any->box.axes().size() + 1};
    for (const auto regions : {wanted, written, passing}) {
        grid.take_bounds(regions);
    }
    grid.make_cells();
    grid.mark(wanted, &Cell::wanted);
    grid.mark(written, &Cell::written);
    grid.mark(passing, &Cell::passing);
    for (std::size_t i = 0; i < grid.cells().size(); ++i) {
        const auto& cell = grid.cells()[i];
        if (cell.wanted == 0 && cell.written == 0) {
            continue;
        }
        const auto region = grid.region_at(i, *any);
        const auto arrivals = cell.written + cell.passing;
        note(result.ambiguous, cell.wanted > 1, region);
        note(result.unwanted, cell.wanted == 0, region);
        note(result.missing, cell.wanted > 0 && arrivals == 0, region);
        note(result.repeated, cell.wanted > 0 && arrivals > 1, region);
        result.delivered += cell.wanted > 0 && arrivals > 0 ? region.elements() : 0;
    }
    return result;
}

bool covers(std::span<const Box> boxes, const Box& box) {
    const auto contains = [&](const Box& outer) {
        return std::ranges::equal(outer.axes(), box.axes(), [](const Interval& a, const Interval& b) {
            return a.begin <= b.begin && b.end <= a.end;
        });
    };
    if (std::ranges::any_of(boxes, contains)) {
        return true;
    }
    if (boxes.size() < 2) {
        return false;
    }
    std::vector<Region> held;
    for (const auto& outer : boxes) {
        held.push_back({{0, 1}, outer});
    }
    const Region wanted{{0, 1}, box};
    return !compare({&wanted, 1}, {}, held).missing;
}

}  // namespace refit::proof
