// SPDX-License-Identifier: Apache-2.0
#include "simulate_timeline.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "cells.hpp"
#include "refit/link_rates.hpp"

namespace refit::cli {
namespace {

constexpr std::size_t kLabel = 27;
constexpr std::size_t kColumns = 70;
constexpr std::size_t kMostRows = 9;
constexpr std::size_t kFewRows = 6;

/// Lanes of one kind that differ by a number in their name: "stage 3, transfers".
struct LaneKind {
    std::string before;  ///< "stage ", "broadcast from trainer ", or all of a name without a number.
    std::string after;   ///< ", transfers".
    std::vector<std::pair<std::string, std::uint32_t>> lanes;  ///< Number and lane.
};

LaneKind kind_of(const std::string& name, std::uint32_t lane) {
    const auto first = name.find_first_of("0123456789");
    if (first == std::string::npos) {
        return {name, "", {{"", lane}}};
    }
    const auto end = std::min(name.size(), name.find_first_not_of("0123456789", first));
    return {name.substr(0, first), name.substr(end), {{name.substr(first, end - first), lane}}};
}

std::vector<LaneKind> kinds_of(const Simulation& simulation) {
    std::vector<LaneKind> kinds;
    for (const auto& usage : simulation.lanes) {
        if (usage.busy_seconds <= 0.0) {
            continue;
        }
        auto kind = kind_of(simulation.graph.lanes[usage.lane].name, usage.lane);
        const auto known = std::ranges::find_if(kinds, [&](const LaneKind& other) {
            return other.before == kind.before && other.after == kind.after;
        });
        if (known == kinds.end()) {
            kinds.push_back(std::move(kind));
        } else {
            known->lanes.push_back(kind.lanes.front());
        }
    }
    return kinds;
}

/// "stages 0-3, transfers", "broadcast from trainers 0-240".
std::string name_of(const LaneKind& kind, std::size_t first, std::size_t last) {
    if (first == last || kind.before.empty()) {
        return kind.before + kind.lanes[first].first + kind.after;
    }
    return kind.before.substr(0, kind.before.size() - 1) + "s " + kind.lanes[first].first + "-" +
           kind.lanes[last].first + kind.after;
}

char density(double share) {
    return share < 0.02 ? ' ' : share < 0.35 ? '.' : share < 0.65 ? ':' : share < 0.95 ? '+' : '#';
}

std::string row(const std::string& label, const std::vector<double>& shares) {
    auto name = label;
    if (name.size() > kLabel - 1) {
        name.resize(kLabel - 1);
    }
    std::string text = "  " + left(name, kLabel - 1) + "|";
    for (const auto share : shares) {
        text += density(share);
    }
    return text + "|\n";
}

/// Share of each column in which a lane did anything, over the lanes of a group.
std::vector<double> busy_shares(const std::vector<std::vector<std::pair<double, double>>>& lanes,
                                double end) {
    std::vector<double> shares(kColumns, 0.0);
    const auto width = end / static_cast<double>(kColumns);
    for (auto intervals : lanes) {
        std::ranges::sort(intervals);
        double reached = 0.0;
        for (const auto& [from, to] : intervals) {
            const auto start = std::max(from, reached);
            for (auto column = static_cast<std::size_t>(start / width); column < kColumns && start < to;
                 ++column) {
                const auto column_start = static_cast<double>(column) * width;
                if (column_start >= to) {
                    break;
                }
                const auto overlap = std::min(to, column_start + width) - std::max(start, column_start);
                shares[column] += std::max(0.0, overlap) / width / static_cast<double>(lanes.size());
            }
            reached = std::max(reached, to);
        }
    }
    return shares;
}

/// Times at round numbers under the rows.
std::string axis(double end) {
    auto step = std::pow(10.0, std::floor(std::log10(end / 2.0)));
    for (const auto factor : {5.0, 2.0, 1.0}) {
        if (end / (step * factor) >= 4.0) {
            step *= factor;
            break;
        }
    }
    const auto start = kLabel + 2;
    std::string text(start + kColumns + 1, ' ');
    for (double at = 0.0; at <= end; at += step) {
        const auto label = number_text("%.6g", at) + (at == 0.0 ? " s" : "");
        const auto column = start + static_cast<std::size_t>(at / end * static_cast<double>(kColumns));
        if (column + label.size() <= start + kColumns) {
            text.replace(column, label.size(), label);
        }
    }
    return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
}

/// Ports of a side as one.
struct PortRow {
    std::string name;
    std::vector<LinkUse> links;  ///< Each as often as it has ranks.
    double capacity = 0.0;
    double share = 0.0;
};

std::vector<PortRow> port_rows(const Simulation& simulation, const Cluster& cluster) {
    std::map<std::pair<Port, bool>, PortRow> rows;
    const auto& graph = simulation.graph;
    for (const auto& usage : simulation.links) {
        const auto port = graph.links[usage.link].port;
        const auto& ranks = graph.ranks_of(usage.link);
        const bool is_trainer = cluster.is_trainer(ranks.front());
        auto& entry = rows[{port, is_trainer}];
        entry.name = std::string{name_of(port)} + (is_trainer ? ", trainers" : ", generators");
        const auto count = static_cast<double>(ranks.size());
        entry.links.push_back({usage.link, count});
        entry.capacity =
            graph.network.rate(usage.link) * (is_trainer ? cluster.train_gpus() : cluster.generate_gpus());
        entry.share += usage.bytes * count;
    }
    std::vector<PortRow> list;
    for (auto& [key, entry] : rows) {
        entry.share /= entry.capacity;
        list.push_back(std::move(entry));
    }
    std::ranges::stable_sort(list, std::greater{}, &PortRow::share);
    return list;
}

std::string port_text(const Simulation& simulation, const Cluster& cluster, std::size_t most) {
    const LinkRates rates{simulation};
    std::string text;
    for (const auto& ports : port_rows(simulation, cluster)) {
        if (most-- == 0) {
            break;
        }
        auto shares = binned(rates.course(ports.links), simulation.seconds(), kColumns);
        for (auto& share : shares) {
            share /= ports.capacity;
        }
        text += row(ports.name, shares);
    }
    return text;
}

}  // namespace

std::vector<LaneGroup> fold_lanes(const Simulation& simulation, std::size_t most) {
    const auto kinds = kinds_of(simulation);
    const auto several = static_cast<std::size_t>(
        std::ranges::count_if(kinds, [](const LaneKind& kind) { return kind.lanes.size() > 1; }));
    const auto single = kinds.size() - several;
    const auto rows = most > single && several > 0 ? std::max<std::size_t>(1, (most - single) / several) : 1;
    std::vector<LaneGroup> groups;
    for (const auto& kind : kinds) {
        const auto in_row = (kind.lanes.size() + rows - 1) / rows;
        for (std::size_t first = 0; first < kind.lanes.size(); first += in_row) {
            const auto last = std::min(first + in_row, kind.lanes.size()) - 1;
            auto& group = groups.emplace_back();
            group.name = name_of(kind, first, last);
            for (auto i = first; i <= last; ++i) {
                group.lanes.push_back(kind.lanes[i].second);
            }
        }
    }
    return groups;
}

std::string timeline_text(const Simulation& simulation, const Cluster& cluster) {
    const auto end = simulation.seconds();
    std::string text = "Timeline  (a column is " +
                       number_text("%.3g", end / static_cast<double>(kColumns) * 1e3) +
                       " ms; of it busy: # all, + most, : half, . less)\n";
    std::vector<std::vector<std::pair<double, double>>> intervals(simulation.graph.lanes.size());
    for (std::uint32_t task = 0; task < simulation.graph.tasks.size(); ++task) {
        intervals[simulation.graph.tasks[task].lane].emplace_back(simulation.run.start[task],
                                                                  simulation.run.end[task]);
    }
    const auto groups = fold_lanes(simulation, kMostRows);
    for (const auto& group : groups) {
        std::vector<std::vector<std::pair<double, double>>> own;
        for (const auto lane : group.lanes) {
            own.push_back(intervals[lane]);
        }
        text += row(group.name, busy_shares(own, end));
    }
    if (groups.size() < kFewRows) {
        text += port_text(simulation, cluster, std::min<std::size_t>(3, kFewRows + 1 - groups.size()));
    }
    return text + axis(end);
}

}  // namespace refit::cli
