// SPDX-License-Identifier: Apache-2.0
#include "refit/gui/course.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "refit/link_rates.hpp"

namespace refit::gui {

std::vector<double> round_ticks(double low, double high, std::size_t least) {
    const auto raw = (high - low) / static_cast<double>(std::max<std::size_t>(1, least));
    const auto power = std::pow(10.0, std::floor(std::log10(raw)));
    auto step = power;
    for (const auto factor : {5.0, 2.0}) {
        if (power * factor <= raw) {
            step = power * factor;
            break;
        }
    }
    std::vector<double> ticks;
    for (auto at = std::ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1.0) {
        ticks.push_back(at * step + 0.0);
    }
    return ticks;
}

TimeWindow zoomed(TimeWindow window, double about, double factor, double end) {
    const auto length = std::clamp(window.length() * factor, end * 1e-6, end);
    const auto share = std::clamp((about - window.from) / window.length(), 0.0, 1.0);
    const auto from = std::clamp(about - share * length, 0.0, end - length);
    return {from, from + length};
}

TimeWindow panned(TimeWindow window, double share, double end) {
    const auto length = window.length();
    const auto from = std::clamp(window.from + share * length, 0.0, std::max(0.0, end - length));
    return {from, from + length};
}

Course make_course(std::shared_ptr<const Simulation> run, std::size_t bins) {
    Course course;
    course.bins = bins;
    const auto& graph = run->graph;
    std::vector<std::size_t> row_of(graph.lanes.size(), graph.lanes.size());
    for (const auto& usage : run->lanes) {
        if (usage.busy_seconds > 0.0) {
            row_of[usage.lane] = course.lanes.size();
            course.lanes.push_back({usage.lane, graph.lanes[usage.lane].name, {}, usage.busy_seconds});
        }
    }
    for (std::uint32_t task = 0; task < graph.tasks.size(); ++task) {
        const auto row = row_of[graph.tasks[task].lane];
        if (row < course.lanes.size()) {
            course.lanes[row].tasks.push_back(task);
        }
    }
    for (auto& lane : course.lanes) {
        std::ranges::stable_sort(lane.tasks, {}, [&](std::uint32_t task) { return run->run.start[task]; });
    }
    const LinkRates rates{*run};
    for (const auto& usage : run->links) {
        const auto port = graph.links[usage.link].port;
        if (port == Port::kCopy || port == Port::kHost) {
            continue;
        }
        PortCourse entry{port, {}, usage.link, graph.network.rate(usage.link), {}, static_cast<float>(usage.share)};
        for (const auto rank : graph.ranks_of(usage.link)) {
            entry.ranks.push_back(rank.index());
        }
        const LinkUse one{usage.link, 1.0};
        for (const auto rate : binned(rates.course({&one, 1}), run->seconds(), bins)) {
            entry.shares.push_back(static_cast<float>(std::clamp(rate / entry.capacity, 0.0, 1.0)));
        }
        course.ports.push_back(std::move(entry));
    }
    course.run = std::move(run);
    return course;
}

std::vector<LaneSlot> slots_of(const Course& course, const CourseLane& lane, TimeWindow window, double least) {
    std::vector<LaneSlot> slots;
    const auto& run = course.run->run;
    const auto& tasks = course.run->graph.tasks;
    double busy = 0.0;
    double longest = 0.0;
    const auto close = [&] {
        if (!slots.empty()) {
            auto& slot = slots.back();
            slot.busy_share = slot.to > slot.from ? std::min(1.0, busy / (slot.to - slot.from)) : 1.0;
        }
    };
    for (const auto task : lane.tasks) {
        const auto start = run.start[task];
        const auto end = run.end[task];
        if (end <= window.from || start >= window.to || end <= start) {
            continue;
        }
        const auto activity = tasks[task].activity;
        const bool joins = !slots.empty() && (start < slots.back().from + least || (end - start < least && start < slots.back().to + least / 2.0 && slots.back().tasks > 1 && slots.back().to - slots.back().from < 6.0 * least));
        if (joins) {
            auto& slot = slots.back();
            busy += std::max(0.0, end - std::max(start, slot.to));
            slot.to = std::max(slot.to, end);
            ++slot.tasks;
            if (end - start > longest) {
                longest = end - start;
                slot.activity = activity;
                slot.task = task;
            }
        } else {
            close();
            slots.push_back({start, end, task, 1, 1.0, activity});
            busy = longest = end - start;
        }
    }
    close();
    return slots;
}

std::vector<PortRow> port_rows(const Course& course, const Groups& groups) {
    std::map<std::pair<Port, std::uint32_t>, PortRow> rows;
    for (const auto& port : course.ports) {
        if (port.port == Port::kUplink || port.port == Port::kDownlink) {
            continue;
        }
        std::map<std::uint32_t, std::uint32_t> in_group;
        for (const auto rank : port.ranks) {
            ++in_group[groups.of_rank(rank)];
        }
        for (const auto& [group, count] : in_group) {
            auto& row = rows[{port.port, group}];
            row.port = port.port;
            row.group = group;
            row.shares.resize(course.bins, 0.0F);
            const auto weight = static_cast<double>(count) / static_cast<double>(groups.members(group).size());
            for (std::size_t bin = 0; bin < course.bins; ++bin) {
                row.shares[bin] += static_cast<float>(weight) * port.shares[bin];
            }
            row.share += weight * static_cast<double>(port.share);
        }
    }
    std::vector<PortRow> list;
    for (auto& [key, row] : rows) {
        list.push_back(std::move(row));
    }
    return list;
}

std::vector<float> busy_at(const Course& course, double time, std::uint32_t ranks) {
    std::vector<float> busy(ranks, 0.0F);
    const auto end = course.seconds();
    if (!(end > 0.0) || course.bins == 0) {
        return busy;
    }
    const auto bin = std::min(course.bins - 1, static_cast<std::size_t>(std::max(0.0, time / end) * static_cast<double>(course.bins)));
    for (const auto& port : course.ports) {
        for (const auto rank : port.ranks) {
            busy[rank] = std::max(busy[rank], port.shares[bin]);
        }
    }
    return busy;
}

Ink ink_of(Activity activity) noexcept {
    switch (activity) {
        case Activity::kControl:
        case Activity::kFinalising:
        case Activity::kGrouping:
            return Ink::kControl;
        case Activity::kCalls:
        case Activity::kPipelineBroadcast:
        case Activity::kTensorAllGather:
        case Activity::kExpertAllGather:
            return Ink::kGather;
        case Activity::kStaging:
        case Activity::kCopies:
        case Activity::kUnpacking:
            return Ink::kCopy;
        case Activity::kWeightBroadcast:
            return Ink::kBroadcast;
        case Activity::kLoading:
        case Activity::kPosting:
            return Ink::kLoad;
        case Activity::kTransfer:
        case Activity::kRelay:
            return Ink::kTransfer;
        case Activity::kReplicas:
            break;
    }
    return Ink::kReplica;
}

std::uint8_t shade_of(Activity activity) noexcept {
    switch (activity) {
        case Activity::kExpertAllGather:
        case Activity::kGrouping:
        case Activity::kPosting:
        case Activity::kUnpacking:
            return 1;
        case Activity::kTensorAllGather:
        case Activity::kFinalising:
            return 2;
        case Activity::kCalls:
            return 3;
        default:
            break;
    }
    return 0;
}

}  // namespace refit::gui
