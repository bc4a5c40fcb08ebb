// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "plan_builder.hpp"
#include "refit/overlap.hpp"
#include "rounds.hpp"

namespace refit {
namespace {

/// Deals out the holders of each source shard in turn, beginning with holder `first`.
class HolderTurns {
public:
    explicit HolderTurns(const Distribution& source, std::size_t first = 0)
        : source_{source}, next_(source.shards().size(), first) {}

    [[nodiscard]] std::uint32_t take(std::uint32_t shard) {
        const auto& members = source_.shards()[shard].members;
        return members[next_[shard]++ % members.size()];
    }
    [[nodiscard]] std::uint32_t first(std::uint32_t shard) const { return source_.shards()[shard].members.front(); }

private:
    const Distribution& source_;
    std::vector<std::size_t> next_;
};

void add_transfer(TransferBlock& block, std::uint32_t source, std::uint32_t destination, std::uint32_t box) {
    block.source.push_back(source);
    block.destination.push_back(destination);
    block.box.push_back(box);
}

TransferBlock to_every_replica(const Distribution& source, const Distribution& destination, std::size_t first_holder) {
    TransferBlock block;
    HolderTurns turns{source, first_holder};
    for (const auto& cell : overlap(source, destination)) {
        const auto box = static_cast<std::uint32_t>(block.boxes.size());
        block.boxes.push_back(cell.box);
        for (const auto member : destination.shards()[cell.destination].members) {
            add_transfer(block, turns.take(cell.source), member, box);
        }
    }
    return block;
}

/// The destination with each replica wanting only its stripe of the shard, along the first axis.
/// Nothing where a shard does not divide, or where no shard has replicas.
std::optional<Distribution> stripes_of(const Distribution& destination) {
    std::vector<Shard> stripes;
    bool has_replicas = false;
    for (const auto& shard : destination.shards()) {
        const auto replicas = shard.members.size();
        has_replicas = has_replicas || replicas > 1;
        std::vector<Shard> parts(replicas);
        for (const auto& box : shard.boxes) {
            const auto rows = box.axes()[0];
            if (rows.length() % replicas != 0) {
                return std::nullopt;
            }
            const auto step = rows.length() / replicas;
            for (std::size_t k = 0; k < replicas; ++k) {
                parts[k].boxes.push_back(box.with(0, {rows.begin + k * step, rows.begin + (k + 1) * step}));
            }
        }
        for (std::size_t k = 0; k < replicas; ++k) {
            parts[k].members = {shard.members[k]};
            stripes.push_back(std::move(parts[k]));
        }
    }
    return has_replicas ? std::optional{Distribution{{destination.shape().begin(), destination.shape().end()}, std::move(stripes)}}
                        : std::nullopt;
}

/// Stripes are refused where an overlap would have to be staged on both ends.
std::optional<TransferBlock> to_stripes(const Distribution& source, const Distribution& destination) {
    const auto stripes = stripes_of(destination);
    if (!stripes) {
        return std::nullopt;
    }
    TransferBlock block;
    HolderTurns turns{source};
    for (const auto& cell : overlap(source, *stripes)) {
        const auto& held = source.shards()[cell.source].boxes[cell.source_box];
        const auto& wanted = stripes->shards()[cell.destination].boxes[cell.destination_box];
        if (!is_contiguous_in(cell.box, held) && !is_contiguous_in(cell.box, wanted)) {
            return std::nullopt;
        }
        add_transfer(block,
                     turns.take(cell.source),
                     stripes->shards()[cell.destination].members.front(),
                     static_cast<std::uint32_t>(block.boxes.size()));
        block.boxes.push_back(cell.box);
    }
    return block;
}

/// Each shard once, from its first holder to its first replica.
TransferBlock to_representatives(const Distribution& source, const Distribution& destination) {
    TransferBlock block;
    const HolderTurns turns{source};
    for (const auto& cell : overlap(source, destination)) {
        add_transfer(block,
                     turns.first(cell.source),
                     destination.shards()[cell.destination].members.front(),
                     static_cast<std::uint32_t>(block.boxes.size()));
        block.boxes.push_back(cell.box);
    }
    return block;
}

class TransferBuilder {
public:
    TransferBuilder(Plan& plan, const Cluster& cluster, const Workload& workload, Spread spread, TransferOrder order)
        : plan_{plan}, cluster_{cluster}, workload_{workload}, spread_{spread}, order_{order} {
        for (std::uint32_t stage = 0; stage < workload.train_stages(); ++stage) {
            auto& entry = stages_.emplace_back();
            entry.kind = StageKind::kTransfer;
            entry.train_stage = stage;
        }
    }

    void add(std::uint32_t index) {
        const auto& entry = workload_.classes()[index];
        for (std::uint32_t generate = 0; generate < entry.destinations.size(); ++generate) {
            const bool is_wanted = std::ranges::any_of(
                entry.slices, [&](const auto& slice) { return slice.generate_stage == generate; });
            if (is_wanted) {
                add_block(index, generate);
            }
        }
    }

    void finish() {
        for (auto& stage : stages_) {
            if (!stage.transfers.empty()) {
                plan_.stages.push_back(std::move(stage));
            }
        }
    }

private:
    void add_block(std::uint32_t index, std::uint32_t generate) {
        const auto& entry = workload_.classes()[index];
        const auto& destination = entry.destinations[generate];
        CollectiveRole role = CollectiveRole::kReplicaAllGather;
        std::optional<TransferBlock> block;
        if (spread_ == Spread::kEveryReplica) {
            add_balanced_blocks(index, generate);
            return;
        }
        if (block = to_stripes(entry.source, destination); !block) {
            block = to_representatives(entry.source, destination);
            role = CollectiveRole::kReplicaBroadcast;
        }
        const auto block_index = keep(std::move(*block), index);
        for (const auto& slice : entry.slices) {
            if (slice.generate_stage == generate) {
                add_use(entry, slice, block_index);
                add_replica_collective(index, slice, destination, role);
            }
        }
    }

    std::uint32_t keep(TransferBlock block, std::uint32_t index) {
        block.parameter = index;
        block.element_bytes = workload_.classes()[index].element_bytes();
        if (order_ == TransferOrder::kRounds) {
            put_in_rounds(block);
        }
        plan_.blocks.push_back(std::move(block));
        return static_cast<std::uint32_t>(plan_.blocks.size() - 1);
    }

    /// Where one tensor does not occupy all holders of a shard alike, the layers begin with different holders: a block
    /// for each beginning, over which the layers are dealt out.
    void add_balanced_blocks(std::uint32_t index, std::uint32_t generate) {
        const auto& entry = workload_.classes()[index];
        const auto& destination = entry.destinations[generate];
        const auto shards = entry.source.shards();
        const auto holders = std::ranges::max(shards, {}, [](const Shard& shard) { return shard.members.size(); }).members.size();
        const auto takes_turns_evenly = [&](const Shard& shard) {
            return destination.shards().empty() || destination.shards().front().members.size() % shard.members.size() == 0;
        };
        const bool is_even = std::ranges::all_of(shards, takes_turns_evenly);
        std::map<std::size_t, std::uint32_t> blocks;
        for (const auto& slice : entry.slices) {
            if (slice.generate_stage != generate) {
                continue;
            }
            const auto beginnings = is_even ? 1 : std::min<std::size_t>(holders, slice.layers);
            for (std::size_t i = 0; i < beginnings; ++i) {
                const auto first = is_even ? 0 : next_holder_++ % holders;
                const auto [block, is_new] = blocks.try_emplace(first, 0);
                if (is_new) {
                    block->second = keep(to_every_replica(entry.source, destination, first), index);
                }
                auto part = slice;
                part.layers = static_cast<std::uint32_t>(slice.layers / beginnings + (i < slice.layers % beginnings ? 1 : 0));
                add_use(entry, part, block->second);
            }
        }
    }

    void add_use(const WorkloadClass& entry, const WorkloadSlice& slice, std::uint32_t block) {
        auto& stage = stages_[slice.train_stage];
        stage.transfers.push_back(
            {block, RankId{slice.train_stage * workload_.trainers_per_stage()}, slice.layers});
        stage.payload += entry.parameter.tensor_bytes() * entry.parameter.tensors_per_layer() * slice.layers;
        stage.expert_parameters += entry.parameter.is_expert() ? slice.layers : 0;
        stage.other_parameters += entry.parameter.is_ffn || entry.parameter.is_expert() ? 0 : slice.layers;
    }

    void add_replica_collective(std::uint32_t index, const WorkloadSlice& slice, const Distribution& destination,
                                CollectiveRole role) {
        const auto& entry = workload_.classes()[index];
        RankGroups groups;
        std::vector<std::uint64_t> bytes;
        for (const auto& shard : destination.shards()) {
            if (shard.members.size() > 1) {
                auto& group = groups.emplace_back();
                for (const auto member : shard.members) {
                    group.push_back(cluster_.generator(member));
                }
                bytes.push_back(shard.elements() * entry.element_bytes() * slice.layers);
            }
        }
        if (!groups.empty()) {
            stages_[slice.train_stage].collectives.push_back(
                {role, index_of(std::move(groups)), std::move(bytes), slice.layers, {index}});
        }
    }

    /// Many classes share the same replica groups.
    std::uint32_t index_of(RankGroups groups) {
        const auto next = static_cast<std::uint32_t>(plan_.groups.size());
        const auto [found, is_new] = known_groups_.try_emplace(std::move(groups), next);
        if (is_new) {
            plan_.groups.push_back(found->first);
        }
        return found->second;
    }

    Plan& plan_;
    const Cluster& cluster_;
    const Workload& workload_;
    Spread spread_;
    TransferOrder order_;
    std::vector<PlanStage> stages_;
    std::size_t next_holder_ = 0;  ///< With which the next tensor begins.
    std::map<RankGroups, std::uint32_t> known_groups_;
};

}  // namespace

void add_transfers(Plan& plan, const Cluster& cluster, const Workload& workload, const ClassIndices& classes,
                   Spread spread, TransferOrder order) {
    TransferBuilder builder{plan, cluster, workload, spread, order};
    for (const auto index : classes) {
        builder.add(index);
    }
    builder.finish();
}

}  // namespace refit
