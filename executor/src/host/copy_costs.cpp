// SPDX-License-Identifier: Apache-2.0
#include "copy_costs.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

namespace refit::exec::host {
namespace {

double line_between(double x, double x0, double y0, double x1, double y1) {
    const auto share = std::clamp((x - x0) / (x1 - x0), 0.0, 1.0);
    return y0 + share * (y1 - y0);
}

/// The first of the ascending `points` whose key is not below `x`, and never the first of all where there are
/// two.
template <class Points, class Key>
std::size_t upper_index(const Points& points, double x, Key&& key) {
    std::size_t i = 1;
    while (i + 1 < points.size() && key(points[i]) < x) {
        ++i;
    }
    return i;
}

}  // namespace

CopyCosts::CopyCosts(const HostRates& rates, std::uint32_t threads) {
    std::array<std::map<std::uint64_t, std::map<std::uint64_t, double>>, 3> table;
    for (const auto& rate : rates.copies) {
        if (rate.threads == threads) {
            table[static_cast<std::size_t>(rate.pattern)][rate.run][rate.footprint] =
                1.0 / rate.bytes_per_second;
        }
    }
    for (std::size_t pattern = 0; pattern < table.size(); ++pattern) {
        if (table[pattern].empty()) {
            throw std::logic_error{"HostRates: no rate for a pattern"};
        }
        std::map<std::uint64_t, double> shorter;
        for (auto& [run, costs] : table[pattern]) {
            // Long runs do not fit small footprints: what the next shorter ones cost there.
            costs.insert(shorter.begin(), shorter.end());
            shorter = costs;
            auto& row = rows_[pattern].emplace_back();
            for (const auto& [footprint, cost] : costs) {
                row.push_back({std::log(static_cast<double>(run)),
                               std::log(static_cast<double>(footprint)),
                               std::log(cost)});
            }
        }
    }
}

double CopyCosts::seconds_per_byte(CopyPattern pattern, std::uint64_t run, double footprint) const {
    const auto at = std::log(std::max(footprint, 1.0));
    const auto in_row = [&](const Row& row) {
        if (row.size() == 1) {
            return row.front().cost;
        }
        const auto i = upper_index(row, at, [](const Point& point) { return point.footprint; });
        return line_between(at, row[i - 1].footprint, row[i - 1].cost, row[i].footprint, row[i].cost);
    };
    const auto& rows = rows_[static_cast<std::size_t>(pattern)];
    if (rows.size() == 1) {
        return std::exp(in_row(rows.front()));
    }
    const auto length = std::log(static_cast<double>(std::max<std::uint64_t>(run, 1)));
    const auto i = upper_index(rows, length, [](const Row& row) { return row.front().run; });
    return std::exp(line_between(
        length, rows[i - 1].front().run, in_row(rows[i - 1]), rows[i].front().run, in_row(rows[i])));
}

}  // namespace refit::exec::host
