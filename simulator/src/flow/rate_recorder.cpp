// SPDX-License-Identifier: Apache-2.0
#include "rate_recorder.hpp"

#include <algorithm>
#include <utility>

namespace refit::flow {

void RateRecorder::close(std::uint32_t flow, double now) {
    const auto& open = open_[flow];
    if (open.rate >= 0.0 && now > open.since) {
        segments_.push_back({flow, open.limit, Seconds{open.since}, Seconds{now}, open.rate});
    }
}

void RateRecorder::set(std::uint32_t flow, std::uint32_t owner, double level, double now) {
    auto& open = open_[flow];
    const auto rate = level * network_.flow(flow).weight;
    const auto limit = owner < limits_.links() ? owner : RateSegment::kOwnCap;
    if (rate != open.rate || limit != open.limit) {
        close(flow, now);
        open = {now, rate, limit};
    }
}

void RateRecorder::end(std::uint32_t flow, double now) {
    close(flow, now);
    open_[flow].rate = -1.0;
}

std::vector<RateSegment> RateRecorder::take() {
    // Those of one flow were closed in the order of time.
    std::stable_sort(
        segments_.begin(), segments_.end(), [](const auto& a, const auto& b) { return a.flow < b.flow; });
    return std::exchange(segments_, {});
}

}  // namespace refit::flow
