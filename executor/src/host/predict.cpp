// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "../parallel.hpp"
#include "copies.hpp"
#include "refit/exec/host_rates.hpp"

namespace refit::exec {
namespace {

/// Between the two nearest points of a table, on a logarithmic scale; at its ends, the end.
double between(const std::map<std::uint64_t, double>& table, std::uint64_t at) {
    const auto above = table.lower_bound(at);
    if (above == table.end()) {
        return std::prev(above)->second;
    }
    if (above == table.begin() || above->first == at) {
        return above->second;
    }
    const auto below = std::prev(above);
    const auto share = std::log(static_cast<double>(at) / static_cast<double>(below->first)) /
                       std::log(static_cast<double>(above->first) / static_cast<double>(below->first));
    return std::exp((1.0 - share) * std::log(below->second) + share * std::log(above->second));
}

/// Seconds a byte, by run length, for one number of threads and one footprint.
class CopyCosts {
public:
    CopyCosts(const HostRates& rates, std::uint32_t threads, std::uint64_t footprint) {
        std::map<std::pair<CopyPattern, std::uint64_t>, std::map<std::uint64_t, double>> by_footprint;
        for (const auto& rate : rates.copies) {
            if (rate.threads == threads) {
                by_footprint[{rate.pattern, rate.run}][rate.footprint] = 1.0 / rate.bytes_per_second;
            }
        }
        for (const auto& [key, costs] : by_footprint) {
            costs_[key.first][key.second] = between(costs, footprint);
        }
        for (const auto pattern : {CopyPattern::kGather, CopyPattern::kScatter, CopyPattern::kRepeat}) {
            if (costs_[pattern].empty()) {
                throw std::logic_error{"HostRates: no rate for a pattern"};
            }
        }
    }

    [[nodiscard]] double seconds(const StridedCopy& copy, bool is_repeated) const {
        const auto cost = [&](CopyPattern pattern) { return between(costs_.at(pattern), copy.run); };
        const bool is_scattered = copy.axes > 0 && copy.destination_step[copy.axes - 1] != copy.run;
        const auto first = cost(is_scattered ? CopyPattern::kScatter : CopyPattern::kGather);
        // A taker of the repeated pattern reads anew one time in eight.
        const auto again = std::max(0.0, (8.0 * cost(CopyPattern::kRepeat) - first) / 7.0);
        return static_cast<double>(copy.bytes()) * (is_repeated ? std::min(first, again) : first);
    }

private:
    std::map<CopyPattern, std::map<std::uint64_t, double>> costs_;
};

/// Seconds that a task's copies take at both rates.
struct TaskCost {
    double alone = 0.0;     ///< On one thread, others idle.
    double together = 0.0;  ///< All threads together: its share of the wave.
};

TaskCost cost_of(const host::Work& work,
                 const host::Task& task,
                 const CopyCosts& alone,
                 const CopyCosts& together,
                 const HostRates& rates) {
    TaskCost cost;
    std::set<std::uint64_t> read;  // Where copies begin that read the present tile.
    std::uint64_t tile = ~std::uint64_t{0};
    for (auto i = task.first; i < task.last; ++i) {
        const auto& copy = work.copies[i];
        if (copy.shape.source / host::kTile != tile) {
            tile = copy.shape.source / host::kTile;
            read.clear();
        }
        const bool is_repeated = !read.insert(copy.shape.source).second;
        cost.alone += alone.seconds(copy.shape, is_repeated) + rates.copy.value();
        cost.together += together.seconds(copy.shape, is_repeated) + rates.copy.value() / rates.threads;
    }
    return cost;
}

}  // namespace

Seconds predict_host(const program::Schedule& schedule, const HostRates& rates) {
    std::vector<program::RankProgram> programs(schedule.ranks());
    parallel_for(rates.threads, programs.size(), [&](std::size_t rank) {
        programs[rank] = schedule.program_of(static_cast<std::uint32_t>(rank));
    });
    std::uint64_t footprint = 0;
    for (const auto& program : programs) {
        footprint += program.arena_bytes[0] + program.arena_bytes[1] + program.arena_bytes[2];
    }
    const auto work = host::work_of(programs, rates.threads);
    const CopyCosts alone{rates, 1, footprint};
    const CopyCosts together{rates, rates.threads, footprint};
    double seconds = 0.0;
    for (std::size_t wave = 0; wave < work.stages.size(); ++wave) {
        double all = 0.0;
        double longest = 0.0;
        for (auto i = work.first_task[wave]; i < work.first_task[wave + 1]; ++i) {
            const auto cost = cost_of(work, work.tasks[i], alone, together, rates);
            all += cost.together;
            longest = std::max(longest, cost.alone);
        }
        const bool is_empty = work.first_task[wave] == work.first_task[wave + 1];
        seconds += is_empty ? 0.0 : rates.wave.value() + std::max(all, longest);
    }
    return Seconds{seconds};
}

}  // namespace refit::exec
