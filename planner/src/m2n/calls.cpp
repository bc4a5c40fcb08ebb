// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "refit/layout.hpp"
#include "refit/layout_check.hpp"
#include "refit/m2n_calls.hpp"

namespace refit {
namespace {

/// Ranks of one train and one generate stage, as their communicator numbers them.
struct Communicator {
    std::vector<std::uint32_t> trainers;    ///< Places in their stage, ascending.
    std::vector<std::uint32_t> generators;  ///< Counted over all, ascending.
    M2nSettings settings;

    [[nodiscard]] std::uint32_t ranks() const noexcept { return static_cast<std::uint32_t>(trainers.size() + generators.size()); }
};

std::uint32_t place_in(const std::vector<std::uint32_t>& ranks, std::uint32_t rank) {
    return static_cast<std::uint32_t>(std::ranges::lower_bound(ranks, rank) - ranks.begin());
}

/// Ranks that NCCL takes as one NVLink domain: all of them, or the largest number that divides every run of
/// neighbours in the same domain. Source: NCCL, dev_runtime.cc.
std::uint32_t domain_size(const Cluster& cluster, const std::vector<RankId>& ranks) {
    std::uint32_t common = 0;
    for (std::size_t begin = 0, end = 0; begin < ranks.size(); begin = end) {
        while (end < ranks.size() && cluster.domain_of(ranks[end]) == cluster.domain_of(ranks[begin])) {
            ++end;
        }
        common = std::gcd(common, static_cast<std::uint32_t>(end - begin));
    }
    return common;
}

Communicator communicator_of(const Scenario& scenario,
                             std::uint32_t train_stage,
                             std::uint32_t generate_stage) {
    const auto& train = scenario.train;
    const auto& generate = scenario.generate;
    const auto& cluster = scenario.cluster;
    Communicator communicator;
    std::vector<RankId> generators;
    for (std::uint32_t generator = 0; generator < generate.gpus; ++generator) {
        const auto rank = cluster.generator(generator);
        if (generator / generate.tp % generate.pp == generate_stage && !cluster.losses().is_absent(rank.index())) {
            generators.push_back(rank);
            communicator.generators.push_back(generator);
        }
    }
    std::vector<RankId> all{generators};
    for (std::uint32_t i = 0; i < train.ranks_per_stage(); ++i) {
        const auto rank = cluster.trainer(train_stage * train.ranks_per_stage() + i);
        if (!cluster.losses().is_absent(rank.index())) {
            all.push_back(rank);
            communicator.trainers.push_back(i);
        }
    }
    const bool is_one_domain = std::ranges::all_of(
        all, [&](RankId rank) { return cluster.domain_of(rank) == cluster.domain_of(all.front()); });
    communicator.settings.path = is_one_domain ? M2nPath::kLsa : M2nPath::kSplit;
    communicator.settings.domain_size = domain_size(cluster, generators);
    return communicator;
}

/// One side of a class as M2N would describe it, or why it cannot.
struct Description {
    std::optional<M2nRefusal> refused;
    std::vector<std::uint32_t> axes;
    std::vector<DtensorPlacement> placements;
    bool keeps_rank_order = true;
};

Description refused(M2nLimit limit, M2nEnd end, std::uint64_t found, std::uint64_t allowed) {
    Description description;
    description.refused = M2nRefusal{limit, end, std::nullopt, std::nullopt, found, allowed};
    return description;
}

std::vector<std::size_t> cut_axes(const Distribution& distribution) {
    std::vector<std::size_t> axes;
    for (std::size_t axis = 0; axis < distribution.shape().size(); ++axis) {
        const bool is_cut = std::ranges::any_of(distribution.shards(), [&](const Shard& shard) {
            return shard.boxes.front().axes()[axis].length() != distribution.shape()[axis];
        });
        if (is_cut) {
            axes.push_back(axis);
        }
    }
    return axes;
}

/// Rows by which the parts of an axis differ, or that are left over; 0 where all are equal.
std::uint64_t unequal_rows(std::uint64_t extent, const std::vector<Interval>& parts, std::uint64_t holders) {
    std::uint64_t least = extent;
    std::uint64_t most = 0;
    for (const auto& part : parts) {
        least = std::min(least, part.length());
        most = std::max(most, part.length());
    }
    // A rank that holds no part at all misses a whole one.
    least = holders % parts.size() == 0 ? least : 0;
    return std::max(most - least, extent % parts.size());
}

/// Meshes of replicas and shards. `members[s]` are the ranks that hold shard s, ascending, numbered from 0.
Description arranged(const std::vector<std::vector<std::uint32_t>>& members, std::size_t axis) {
    const auto shards = static_cast<std::uint32_t>(members.size());
    const auto replicas = static_cast<std::uint32_t>(members.front().size());
    const auto lies = [&](auto&& rank_of) {
        for (std::uint32_t shard = 0; shard < shards; ++shard) {
            for (std::uint32_t replica = 0; replica < replicas; ++replica) {
                if (members[shard][replica] != rank_of(shard, replica)) {
                    return false;
                }
            }
        }
        return true;
    };
    const DtensorPlacement cut{DtensorPlacement::Kind::kShard, axis, 1};
    if (shards == 1) {
        return {std::nullopt, {replicas}, {DtensorPlacement{}}, true};
    }
    const bool has_shards_inner = lies([&](auto shard, auto replica) { return replica * shards + shard; });
    if (!has_shards_inner && lies([&](auto shard, auto replica) { return shard * replicas + replica; })) {
        return {std::nullopt, {shards, replicas}, {cut, DtensorPlacement{}}, true};
    }
    return {std::nullopt, {replicas, shards}, {DtensorPlacement{}, cut}, has_shards_inner};
}

/// `place` numbers a member within its communicator's side of `ranks` ranks.
template <class Place>
Description describe(const Distribution& distribution, M2nEnd end, std::uint32_t ranks, const Place& place) {
    std::size_t blocks = 0;
    for (const auto& shard : distribution.shards()) {
        blocks = std::max(blocks, shard.boxes.size());
    }
    if (blocks > 1) {
        return refused(M2nLimit::kStridedShards, end, blocks, 1);
    }
    const auto axes = cut_axes(distribution);
    if (axes.size() > 1) {
        return refused(M2nLimit::kShardAxes, end, axes.size(), 1);
    }
    const auto axis = axes.empty() ? 0 : axes.front();
    auto shards = std::vector<Shard>(distribution.shards().begin(), distribution.shards().end());
    std::ranges::sort(shards, {}, [&](const Shard& shard) { return shard.boxes.front().axes()[axis].begin; });
    std::vector<Interval> parts;
    std::vector<std::vector<std::uint32_t>> members;
    for (const auto& shard : shards) {
        parts.push_back(shard.boxes.front().axes()[axis]);
        auto& places = members.emplace_back();
        std::ranges::transform(shard.members, std::back_inserter(places), place);
        std::ranges::sort(places);
    }
    if (const auto rows = unequal_rows(distribution.shape()[axis], parts, ranks); rows > 0) {
        return refused(M2nLimit::kUnequalShards, end, rows, 0);
    }
    return arranged(members, axis);
}

std::vector<std::uint32_t> members_of(const Distribution& distribution) {
    std::vector<std::uint32_t> members;
    for (const auto& shard : distribution.shards()) {
        members.insert(members.end(), shard.members.begin(), shard.members.end());
    }
    std::ranges::sort(members);
    return members;
}

/// The calls of one slice of a class.
M2nStageCalls calls_of(const WorkloadClass& entry,
                       const WorkloadSlice& slice,
                       const Communicator& communicator,
                       const Losses& losses) {
    M2nStageCalls calls;
    calls.train_stage = slice.train_stage;
    calls.generate_stage = slice.generate_stage;
    calls.calls = slice.layers;
    calls.settings = communicator.settings;
    const auto even = m2n_source(entry, losses);
    const auto senders = members_of(even);
    // Holders of nothing miss a part; those whom the mesh leaves out do not.
    const auto& trainers = senders.size() < members_of(entry.source).size() ? senders : communicator.trainers;
    auto source = describe(even, M2nEnd::kSource, static_cast<std::uint32_t>(trainers.size()),
                           [&](auto member) { return place_in(trainers, member); });
    auto destination = describe(entry.destinations[slice.generate_stage],
                                M2nEnd::kDestination,
                                static_cast<std::uint32_t>(communicator.generators.size()),
                                [&](auto member) { return place_in(communicator.generators, member); });
    for (const auto& side : {source, destination}) {
        if (side.refused) {
            calls.refused.push_back(*side.refused);
        }
        calls.keeps_rank_order = calls.keeps_rank_order && side.keeps_rank_order;
    }
    if (!calls.refused.empty()) {
        return calls;
    }
    const auto tensor = [&](Description& side, std::uint32_t first_rank) {
        return M2nTensor{{entry.source.shape().begin(), entry.source.shape().end()},
                         entry.element_bytes(),
                         {std::move(side.axes), RankId{first_rank}},
                         std::move(side.placements)};
    };
    calls.call = M2nCall{tensor(source, 0),
                         tensor(destination, static_cast<std::uint32_t>(communicator.trainers.size())),
                         communicator.ranks()};
    calls.refused = m2n_refusals(*calls.call, calls.settings);
    return calls;
}

}  // namespace

Distribution m2n_source(const WorkloadClass& entry, const Losses& losses) {
    std::vector<Shard> shards{entry.source.shards().begin(), entry.source.shards().end()};
    if (!losses.empty() && !shards.empty()) {
        const auto fewest = std::ranges::min(shards, {}, [](const Shard& shard) { return shard.members.size(); }).members.size();
        std::ranges::for_each(shards, [&](Shard& shard) { shard.members.resize(fewest); });
    }
    return {{entry.source.shape().begin(), entry.source.shape().end()}, std::move(shards)};
}

std::vector<M2nStageCalls> m2n_calls(const Scenario& scenario, const Workload& workload) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, Communicator> communicators;
    std::vector<M2nStageCalls> list;
    for (std::uint32_t index = 0; index < workload.classes().size(); ++index) {
        const auto& entry = workload.classes()[index];
        for (const auto& slice : entry.slices) {
            const auto [found, is_new] = communicators.try_emplace({slice.train_stage, slice.generate_stage});
            if (is_new) {
                found->second = communicator_of(scenario, slice.train_stage, slice.generate_stage);
            }
            list.push_back(calls_of(entry, slice, found->second, workload.losses()));
            list.back().parameter = index;
        }
    }
    return list;
}

namespace {

/// The faults of a scenario without cures, each limit and its numbers once.
Faults grouped_faults(const Scenario& scenario, const Workload& workload) {
    Faults faults;
    std::vector<std::vector<std::string>> classes;  // by fault
    for (const auto& calls : m2n_calls(scenario, workload)) {
        for (const auto& refusal : calls.refused) {
            auto fault = to_fault(refusal);
            const auto known = std::ranges::find(faults, fault.message, &Fault::message);
            const auto index = static_cast<std::size_t>(known - faults.begin());
            if (known == faults.end()) {
                faults.push_back(std::move(fault));
                classes.emplace_back();
            }
            const auto& name = workload.classes()[calls.parameter].parameter.name;
            if (std::ranges::find(classes[index], name) == classes[index].end()) {
                classes[index].push_back(name);
            }
        }
    }
    for (std::size_t i = 0; i < faults.size(); ++i) {
        const auto more = classes[i].size() - 1;
        faults[i].where = classes[i].front() + (more > 0 ? " and " + std::to_string(more) + " more" : "");
    }
    return faults;
}

/// The layout with the most expert shards for which no destination meets too many sources.
std::optional<Suggestion> fewer_expert_shards(const Scenario& scenario) {
    auto text = parse_layout(to_text(scenario.train));
    for (auto ep = scenario.train.ep; text && --ep > 0;) {
        text->ep = ep;
        auto layout = make_train_layout(*text, scenario.train.gpus, scenario.model);
        if (!layout) {
            continue;
        }
        auto changed = scenario;
        changed.train = std::move(*layout);
        if (!losses_of(changed, changed.cluster.losses().lost)) {
            continue;
        }
        const auto faults = grouped_faults(changed, Workload::make(changed));
        if (std::ranges::count(faults, name_of(M2nLimit::kSources), &Fault::rule) == 0) {
            return Suggestion{"train.layout", to_text(changed.train), ""};
        }
    }
    return std::nullopt;
}

}  // namespace

Faults m2n_scenario_faults(const Scenario& scenario, const Workload& workload) {
    auto faults = grouped_faults(scenario, workload);
    const auto sources = std::ranges::find(faults, name_of(M2nLimit::kSources), &Fault::rule);
    if (sources != faults.end()) {
        sources->nearest = fewer_expert_shards(scenario);
    }
    return faults;
}

}  // namespace refit
