// SPDX-License-Identifier: Apache-2.0
#include "refit/memory.hpp"

#include <algorithm>
#include <deque>
#include <numeric>

namespace refit {
namespace {

/// Fills packs in the order of the export and remembers the most bytes that `buffers` packs in a row ever hold.
/// A pack closes when it exceeds the target, so it overshoots by up to one tensor.
class PackWalk {
public:
    PackWalk(std::uint64_t target, std::uint32_t buffers) : target_{target}, recent_(buffers, 0) {}

    void add(std::uint64_t tensor_bytes, std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i) {
            open_ += tensor_bytes;
            if (open_ > target_) {
                close();
            }
        }
    }
    [[nodiscard]] std::uint64_t peak() {
        close();
        return peak_;
    }

private:
    void close() {
        recent_.pop_front();
        recent_.push_back(open_);
        open_ = 0;
        peak_ = std::max(peak_, std::accumulate(recent_.begin(), recent_.end(), std::uint64_t{0}));
    }

    std::uint64_t target_;
    std::deque<std::uint64_t> recent_;
    std::uint64_t open_ = 0;
    std::uint64_t peak_ = 0;
};

bool is_in_packs(const Plan& plan, const ParameterClass& parameter) {
    return plan.method == Method::kGatherBroadcast ||
           (plan.method == Method::kHybrid && !is_bulk(parameter, plan.coverage));
}

std::uint64_t pack_peak(const Plan& plan, const Scenario& scenario, const Workload& workload, Bytes gpu_memory) {
    PackWalk walk{pack_target(scenario.engine, gpu_memory).count(), scenario.engine.options.buffers};
    const auto outside = [&](bool on_last_stage) {
        for (const auto& entry : workload.classes()) {
            const auto& parameter = entry.parameter;
            if (parameter.layers.empty() && parameter.on_last_stage == on_last_stage && is_in_packs(plan, parameter)) {
                walk.add(parameter.tensor_bytes().count(), 1);
            }
        }
    };
    outside(false);
    for (std::uint32_t layer = 0; layer < scenario.model.layers(); ++layer) {
        for (const auto& entry : workload.classes()) {
            const auto& parameter = entry.parameter;
            if (is_in_packs(plan, parameter) && std::ranges::binary_search(parameter.layers, layer)) {
                walk.add(parameter.tensor_bytes().count(), parameter.tensors_per_layer());
            }
        }
    }
    outside(true);
    return walk.peak();
}

std::uint64_t largest_shard(const Distribution& distribution) {
    std::uint64_t largest = 0;
    for (const auto& shard : distribution.shards()) {
        largest = std::max(largest, shard.elements());
    }
    return largest;
}

}  // namespace

Bytes pack_target(const Engine& engine, Bytes gpu_memory) {
    const auto target = static_cast<std::uint64_t>(gpu_memory.as_double() * engine.options.buffer_memory_ratio);
    return std::min(Bytes{target}, engine.pack_cap);
}

Bytes largest_region(const Plan& plan, const Workload& workload) {
    Bytes largest;
    for (const auto& block : plan.blocks) {
        for (const auto& destination : workload.classes()[block.parameter].destinations) {
            largest = std::max(largest, Bytes{largest_shard(destination)} * block.element_bytes);
        }
    }
    return largest;
}

PeakBytes peak_bytes(const Plan& plan, const Scenario& scenario, const Workload& workload) {
    const auto& cluster = scenario.cluster;
    PeakBytes peak{Bytes{pack_peak(plan, scenario, workload, cluster.train_system().gpu_memory.value)} * 2,
                   Bytes{pack_peak(plan, scenario, workload, cluster.generate_system().gpu_memory.value)}};
    Bytes stack;
    for (const auto& block : plan.blocks) {
        stack = std::max(stack, Bytes{largest_shard(workload.classes()[block.parameter].source)} * block.element_bytes);
    }
    for (const auto& stage : plan.stages) {
        for (const auto& message : stage.relays.messages) {
            const auto staged = Bytes{message.bytes} * scenario.engine.options.streams;
            peak.train = std::max(peak.train, staged);
            peak.generation = std::max(peak.generation, staged);
        }
    }
    peak.train = std::max(peak.train, stack * 2);
    peak.generation = std::max(peak.generation, largest_region(plan, workload) * scenario.engine.options.streams);
    return peak;
}

}  // namespace refit
