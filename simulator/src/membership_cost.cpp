// SPDX-License-Identifier: Apache-2.0
#include "refit/membership_cost.hpp"

#include <algorithm>

namespace refit {
namespace {

RangedTime sum(const RangedTime& a, const RangedTime& b) {
    return {a.value + b.value, a.low + b.low, a.high + b.high};
}

/// n (a + b N) over all kinds; the low end is that of the longest one alone.
RangedTime made(std::span<const CommunicatorKind> kinds, const Constant& once, const Constant& per_gpu) {
    RangedTime time;
    for (const auto& [count, ranks] : kinds) {
        const auto n = static_cast<double>(count);
        const auto gpus = static_cast<double>(ranks);
        time.value += Seconds{n * (once.value + per_gpu.value * gpus)};
        time.low = std::max(time.low, Seconds{once.low + per_gpu.low * gpus});
        time.high += Seconds{n * (once.high + per_gpu.high * gpus)};
    }
    return time;
}

RangedTime set_up(std::uint32_t communicators, double value, double low, double high) {
    const auto n = static_cast<double>(communicators);
    return {Seconds{n * value}, Seconds{low}, Seconds{n * high}};
}

/// Trainers that take part in a packed broadcast of these trainers.
std::uint32_t broadcasting(const Scenario& scenario, std::uint32_t trainers) {
    const auto& options = scenario.engine.options;
    switch (options.broadcast_group) {
        case BroadcastGroup::kAll:
            return trainers;
        case BroadcastGroup::kRootDomain:
            return std::min(trainers, scenario.cluster.placement().train_gpus_per_domain);
        case BroadcastGroup::kGenerators:
        case BroadcastGroup::kPairs:
            break;
    }
    return std::min(trainers, options.broadcast_senders);
}

CommunicatorKind broadcasts_of(const Scenario& scenario) {
    const auto generators = scenario.generate.gpus;
    if (scenario.engine.options.broadcast_group == BroadcastGroup::kPairs) {
        return {1, 2};
    }
    const bool has_stage_roots = scenario.engine.options.broadcast_root == BroadcastRoot::kEachStage;
    const auto trainers = has_stage_roots ? scenario.train.ranks_per_stage() : scenario.train.gpus;
    return {has_stage_roots ? scenario.train.pp : 1, broadcasting(scenario, trainers) + generators};
}

}  // namespace

std::vector<CommunicatorKind> communicators_of(Method method, const Scenario& scenario) {
    const CommunicatorKind stages{scenario.train.pp,
                                  scenario.train.ranks_per_stage() + scenario.generate.gpus};
    switch (method) {
        case Method::kGatherBroadcast:
            return {broadcasts_of(scenario)};
        case Method::kHybrid:
            return {broadcasts_of(scenario), stages};
        case Method::kM2n:
            return {stages};
        case Method::kDirect:
        case Method::kStriped:
        case Method::kOptimal:
            break;
    }
    return {{1, scenario.train.gpus + scenario.generate.gpus}};
}

std::uint32_t count_of(std::span<const CommunicatorKind> kinds) noexcept {
    std::uint32_t count = 0;
    for (const auto& kind : kinds) {
        count += kind.count;
    }
    return count;
}

const char* name_of(MembershipWay way) noexcept {
    return way == MembershipWay::kRebuild ? "rebuild" : "shrink-and-grow";
}

RangedTime MembershipCost::lost() const {
    return sum(change, setup);
}

MembershipCost membership_cost(MembershipWay way,
                               const MembershipChange& change,
                               std::span<const CommunicatorKind> before,
                               std::span<const CommunicatorKind> after,
                               const MembershipConstants& constants) {
    const auto count = count_of(after);
    if (change.lost_replicas == 0 && change.new_replicas == 0) {
        return {};
    }
    if (way == MembershipWay::kRebuild) {
        const auto& setup = constants.setup_after_rebuild;
        return {made(after, constants.rebuild, constants.rebuild_per_gpu),
                set_up(count, setup.value, setup.low, setup.high)};
    }
    MembershipCost cost;
    double value = 0.0;
    double low = 0.0;
    double high = 0.0;
    const auto add = [&](std::span<const CommunicatorKind> kinds,
                         const Constant& once,
                         const Constant& per_gpu,
                         const Constant& setup) {
        cost.change = sum(cost.change, made(kinds, once, per_gpu));
        value = std::max(value, setup.value);
        low = std::max(low, setup.low);
        high = std::max(high, setup.high);
    };
    if (change.lost_replicas > 0) {
        add(before, constants.shrink, constants.shrink_per_gpu, constants.setup_after_shrink);
    }
    if (change.new_replicas > 0) {
        add(after, constants.grow, constants.grow_per_gpu, constants.setup_after_grow);
    }
    cost.setup = set_up(count, value, low, high);
    return cost;
}

}  // namespace refit
