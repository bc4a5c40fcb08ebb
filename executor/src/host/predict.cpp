// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "../parallel.hpp"
#include "copies.hpp"
#include "copy_costs.hpp"
#include "refit/exec/host_rates.hpp"
#include "reuse.hpp"
#include "trial.hpp"

namespace refit::exec {
namespace {

/// Seconds that a task takes while other threads idle, and while all copy.
struct TaskCost {
    double alone = 0.0;
    double together = 0.0;
};

/// What the copies of a plan cost by rates that a probe measured.
class Costs {
public:
    Costs(const host::Work& work, const std::vector<program::RankProgram>& programs, const HostRates& rates)
        : work_{work}, rates_{rates}, alone_{rates, 1}, together_{rates, rates.threads}, reuse_{programs} {
        // A refit before this one has left its traces in the caches.
        for (const auto& task : work.tasks) {
            (void)cost_of(task, 0);
        }
    }

    [[nodiscard]] TaskCost of(const host::Task& task) { return cost_of(task, work_.stages.size()); }

private:
    TaskCost cost_of(const host::Task& task, std::size_t first_wave) {
        TaskCost cost;
        std::set<std::uint64_t> read;  // Where copies begin that read the present tile.
        std::uint64_t tile = ~std::uint64_t{0};
        for (auto i = task.first; i < task.last; ++i) {
            const auto& copy = work_.copies[i];
            if (copy.shape.source / host::kTile != tile) {
                tile = copy.shape.source / host::kTile;
                read.clear();
            }
            const bool is_repeated = !read.insert(copy.shape.source).second;
            const auto apart = reuse_.use(task, copy, is_repeated, first_wave + task.wave);
            cost.alone += seconds(alone_, copy.shape, apart, is_repeated) + rates_.copy.value();
            // Of its bytes all threads together move as many as there are threads.
            cost.together +=
                seconds(together_, copy.shape, apart, is_repeated) * rates_.threads + rates_.copy.value();
        }
        return cost;
    }

    static double seconds(const host::CopyCosts& costs,
                          const StridedCopy& copy,
                          const host::Reuse::Distances& apart,
                          bool is_repeated) {
        const bool is_scattered = copy.axes > 0 && copy.destination_step[copy.axes - 1] != copy.run;
        const auto pattern = is_scattered ? CopyPattern::kScatter : CopyPattern::kGather;
        const auto written = std::exp(apart.destination);
        const auto first = costs.seconds_per_byte(pattern, copy.run, written);
        const auto bytes = static_cast<double>(copy.bytes());
        // Of the takers of the repeated pattern one reads anew.
        constexpr double kReaders = host::kReaders;
        const auto repeated = costs.seconds_per_byte(CopyPattern::kRepeat, copy.run, written);
        const auto again = (kReaders * repeated - first) / (kReaders - 1.0);
        const auto cached = std::clamp(again, 0.0, first);
        if (is_repeated) {
            return bytes * cached;
        }
        const auto read = costs.seconds_per_byte(pattern, copy.run, std::exp(apart.source));
        return bytes * std::max((first + read) / 2.0, cached);
    }

    const host::Work& work_;
    const HostRates& rates_;
    host::CopyCosts alone_;
    host::CopyCosts together_;
    host::Reuse reuse_;
};

/// When the last of a wave's tasks is done. Threads take them in order; what is left of each costs less once
/// fewer threads copy.
double wave_seconds(const std::vector<TaskCost>& tasks, std::uint32_t threads) {
    std::vector<std::pair<TaskCost, double>> at_work;  // And the share that is left.
    std::size_t next = 0;
    double now = 0.0;
    while (true) {
        while (at_work.size() < threads && next < tasks.size()) {
            at_work.emplace_back(tasks[next++], 1.0);
        }
        if (at_work.empty()) {
            return now;
        }
        const auto busy =
            threads < 2 ? 1.0 : static_cast<double>(at_work.size() - 1) / static_cast<double>(threads - 1);
        const auto whole = [&](const TaskCost& cost) {
            return cost.alone + busy * (cost.together - cost.alone);
        };
        double step = 1e300;
        for (const auto& [cost, left] : at_work) {
            step = std::min(step, left * whole(cost));
        }
        now += step;
        for (auto& [cost, left] : at_work) {
            left -= whole(cost) > 0.0 ? step / whole(cost) : left;
        }
        std::erase_if(at_work, [](const auto& task) { return task.second <= 1e-12; });
    }
}

}  // namespace

Seconds predict_host(const program::Schedule& schedule, const HostRates& rates) {
    std::vector<program::RankProgram> programs(schedule.ranks());
    parallel_for(rates.threads, programs.size(), [&](std::size_t rank) {
        programs[rank] = schedule.program_of(static_cast<std::uint32_t>(rank));
    });
    const auto work = host::work_of(programs, rates.threads);
    Costs costs{work, programs, rates};
    double seconds = 0.0;
    for (std::size_t wave = 0; wave < work.stages.size(); ++wave) {
        std::vector<TaskCost> tasks;
        for (auto i = work.first_task[wave]; i < work.first_task[wave + 1]; ++i) {
            tasks.push_back(costs.of(work.tasks[i]));
        }
        if (!tasks.empty()) {
            seconds += rates.wave.value() + wave_seconds(tasks, rates.threads);
        }
    }
    return Seconds{seconds};
}

}  // namespace refit::exec
