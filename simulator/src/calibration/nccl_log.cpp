// SPDX-License-Identifier: Apache-2.0
#include "refit/nccl_log.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace refit {
namespace {

/// A line of seconds over bytes.
struct Line {
    double seconds = 0.0;
    double per_byte = 0.0;
    double relative_error = 0.0;  ///< Of `per_byte`, one standard deviation.
};

/// Weights 1 / seconds^2: the sum of squares of relative errors. A line that would begin below 0 begins at 0.
Line fitted(const std::vector<NcclSample>& samples) {
    double w = 0.0;
    double wx = 0.0;
    double wxx = 0.0;
    double wy = 0.0;
    double wxy = 0.0;
    for (const auto& sample : samples) {
        const auto weight = 1.0 / (sample.seconds * sample.seconds);
        w += weight;
        wx += weight * sample.bytes;
        wxx += weight * sample.bytes * sample.bytes;
        wy += weight * sample.seconds;
        wxy += weight * sample.bytes * sample.seconds;
    }
    const auto determinant = w * wxx - wx * wx;
    Line line{0.0, wxy / wxx, 0.0};
    if (determinant > 1e-9 * w * wxx) {
        const Line free{(wxx * wy - wx * wxy) / determinant, (w * wxy - wx * wy) / determinant, 0.0};
        line = free.seconds >= 0.0 && free.per_byte > 0.0 ? free : line;
    }
    double squares = 0.0;
    for (const auto& sample : samples) {
        const auto error = (line.seconds + line.per_byte * sample.bytes) / sample.seconds - 1.0;
        squares += error * error;
    }
    const auto count = static_cast<double>(samples.size());
    line.relative_error = std::sqrt(squares / std::max(count - 2.0, 1.0) / count);
    return line;
}

}  // namespace

LinkFit fit_link(const NcclTable& table) {
    if (table.samples.empty()) {
        throw std::logic_error{"a table without samples"};
    }
    const auto [least, most] = std::ranges::minmax(table.samples, {}, &NcclSample::size);
    const auto middle = std::sqrt(least.size * most.size);
    std::vector<NcclSample> small;
    std::vector<NcclSample> large;
    for (const auto& sample : table.samples) {
        (sample.size > middle || least.size == most.size ? large : small).push_back(sample);
    }
    LinkFit fit;
    fit.samples = table.samples.size();
    const auto rate = fitted(large);
    fit.rate = 1.0 / rate.per_byte;
    fit.spread = 1.0 + rate.relative_error;
    fit.latency = small.empty() ? 0.0 : fitted(small).seconds;
    return fit;
}

}  // namespace refit
