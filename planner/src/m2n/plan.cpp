// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "builder.hpp"
#include "refit/m2n.hpp"
#include "refit/m2n_limits.hpp"
#include "route.hpp"
#include "totals.hpp"

namespace refit {
namespace {

Failure refused(const std::vector<M2nRefusal>& refusals) {
    Faults faults;
    for (const auto& refusal : refusals) {
        faults.push_back(to_fault(refusal));
    }
    return fail(std::move(faults));
}

}  // namespace

std::vector<RankId> M2nPlan::sources_of(const M2nDestination& entry) const {
    std::vector<RankId> ranks;
    for (auto pair = entry.sources.begin; pair < entry.sources.end; ++pair) {
        ranks.push_back(source.rank_of(pairs[pair].source_shard, entry.source_replica));
    }
    return ranks;
}

std::vector<RankId> M2nPlan::followers_of(const M2nDestination& entry) const {
    std::vector<RankId> ranks;
    for (auto replica = entry.domain_replicas.begin; replica < entry.domain_replicas.end; ++replica) {
        if (replica != entry.replica) {
            ranks.push_back(destination.rank_of(entry.shard, replica));
        }
    }
    return ranks;
}

std::uint64_t M2nPlan::awaited_bytes(const M2nDestination& entry) const {
    std::uint64_t sum = 0;
    for (auto pair = entry.sources.begin; pair < entry.sources.end; ++pair) {
        sum += pairs[pair].bytes;
    }
    return sum;
}

Result<M2nPlan> m2n_plan(const M2nCall& call, const M2nSettings& settings) {
    if (auto faults = m2n_faults(call, settings); !faults.empty()) {
        return fail(std::move(faults));
    }
    if (const auto refusals = m2n::description_refusals(call); !refusals.empty()) {
        return refused(refusals);
    }
    const auto route = m2n::route_of(call, settings);
    const m2n::ShardOverlap overlap{call.source, route.source, route.destination};
    if (const auto refusals = m2n::plan_refusals(route, overlap, settings); !refusals.empty()) {
        return refused(refusals);
    }
    M2nPlan plan;
    plan.path = route.path;
    plan.balance = route.balance;
    plan.source = route.source;
    plan.destination = route.destination;
    if (route.path == M2nPath::kLsa) {
        m2n::add_flat(plan, overlap, route.arrangement.match);
    } else {
        m2n::add_hierarchical(plan, overlap, route.arrangement);
    }
    plan.totals = m2n::totals_of(plan);
    return plan;
}

}  // namespace refit
