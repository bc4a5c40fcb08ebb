// SPDX-License-Identifier: Apache-2.0
#include "size_baselines.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace refit {
namespace {

/// How far beyond its anchors a calculator is still asked.
constexpr double kAnchorSlack = 0.05;

/// A time for a size. Unit: s, bytes.
using SizeModel = std::function<std::optional<double>(double)>;

struct Point {
    double bytes;
    double seconds;
};

std::vector<Point> anchor_points(std::span<const PublishedRecord> anchors) {
    std::vector<Point> points;
    for (const auto& anchor : anchors) {
        if (anchor.is_size_anchor && anchor.bytes && anchor.low && anchor.high) {
            points.push_back({anchor.bytes->as_double(), (anchor.low->value() + anchor.high->value()) / 2.0});
        }
    }
    std::ranges::sort(points, {}, &Point::bytes);
    const auto same = [](const Point& a, const Point& b) { return a.bytes == b.bytes; };
    points.erase(std::unique(points.begin(), points.end(), same), points.end());
    return points;
}

std::optional<double> interpolated(const std::vector<Point>& points, double bytes) {
    if (points.size() < 2 || bytes < points.front().bytes * (1.0 - kAnchorSlack) ||
        bytes > points.back().bytes * (1.0 + kAnchorSlack)) {
        return std::nullopt;
    }
    auto right = std::ranges::lower_bound(points, bytes, {}, &Point::bytes);
    right = std::clamp(right, points.begin() + 1, points.end() - 1);
    const auto& above = *right;
    const auto& below = *(right - 1);
    const auto share = std::log(bytes / below.bytes) / std::log(above.bytes / below.bytes);
    return below.seconds + share * (above.seconds - below.seconds);
}

bool is_reshard(const ValidationRow& row) {
    return row.record.engine == "nemo-rl-reshard" && row.error.has_value();
}

/// The middle of what was published for each refit.
std::vector<Point> published_points(std::span<const ValidationRow> rows) {
    std::vector<Point> points;
    std::set<std::size_t> seen;
    for (const auto& row : rows) {
        if (is_reshard(row) && seen.insert(row.configuration).second) {
            points.push_back({row.payload.as_double(), (row.low->value() + row.high->value()) / 2.0});
        }
    }
    return points;
}

struct Line {
    double seconds;  ///< At no bytes.
    double rate;     ///< Unit: bytes per second.
};

/// The sum of squared logarithms of the best line whose rate times its seconds is `bytes`, and those seconds.
std::pair<double, double> misfit(const std::vector<Point>& points, double bytes) {
    double sum = 0.0;
    double squares = 0.0;
    for (const auto& point : points) {
        const auto log = std::log(point.seconds / (1.0 + point.bytes / bytes));
        sum += log;
        squares += log * log;
    }
    const auto count = static_cast<double>(points.size());
    return {squares - sum * sum / count, std::exp(sum / count)};
}

/// The line of the least misfit, by a search over the one number that is not linear in the logarithms.
std::optional<Line> fitted_line(const std::vector<Point>& points) {
    const auto [smallest, largest] = std::ranges::minmax_element(points, {}, &Point::bytes);
    if (points.size() < 3 || smallest->bytes == largest->bytes) {
        return std::nullopt;
    }
    // From a line that is flat to one through the origin.
    const auto first = std::log(smallest->bytes / 1e3);
    const auto last = std::log(largest->bytes * 1e3);
    constexpr int kSteps = 20'000;
    auto best = first;
    for (int i = 0; i <= kSteps; ++i) {
        const auto at = first + (last - first) * i / kSteps;
        best = misfit(points, std::exp(at)).first < misfit(points, std::exp(best)).first ? at : best;
    }
    const auto seconds = misfit(points, std::exp(best)).second;
    return Line{seconds, std::exp(best) / seconds};
}

std::optional<Baseline> beside(std::span<const ValidationRow> rows,
                               std::string name,
                               std::string formula,
                               const SizeModel& model) {
    Baseline baseline{std::move(name), std::move(formula)};
    std::vector<double> errors;
    std::vector<double> ours;
    const auto worse = [](double worst, double error) {
        return std::abs(error) > std::abs(worst) ? error : worst;
    };
    for (const auto& row : rows) {
        const auto seconds = is_reshard(row) ? model(row.payload.as_double()) : std::nullopt;
        if (!seconds) {
            continue;
        }
        const auto error = error_beside(Seconds{*seconds}, *row.low, *row.high);
        baseline.worst_error = worse(baseline.worst_error, error);
        baseline.model_worst_error = worse(baseline.model_worst_error, *row.error);
        errors.push_back(std::abs(error));
        ours.push_back(std::abs(*row.error));
    }
    if (errors.empty()) {
        return std::nullopt;
    }
    baseline.rows = errors.size();
    baseline.median_error = median(std::move(errors));
    baseline.model_median_error = median(std::move(ours));
    return baseline;
}

std::string describe_line(const Line& line) {
    char text[80];
    std::snprintf(text, sizeof text, "%.2f s + bytes / (%.0f GB/s)", line.seconds, line.rate / 1e9);
    return text;
}

}  // namespace

double median(std::vector<double> values) {
    std::ranges::sort(values);
    const auto middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2.0;
}

std::vector<Baseline> size_baselines(std::span<const ValidationRow> rows,
                                     std::span<const PublishedRecord> anchors) {
    std::vector<Baseline> baselines;
    const auto points = anchor_points(anchors);
    const auto add = [&](std::optional<Baseline> baseline) {
        if (baseline) {
            baselines.push_back(std::move(*baseline));
        }
    };
    add(beside(rows, "calculator", "anchors interpolated over log bytes", [&](double bytes) {
        return interpolated(points, bytes);
    }));
    if (const auto line = fitted_line(published_points(rows))) {
        add(beside(rows, "line", describe_line(*line), [&](double bytes) {
            return std::optional{line->seconds + bytes / line->rate};
        }));
    }
    return baselines;
}

}  // namespace refit
