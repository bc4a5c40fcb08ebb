// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "step.hpp"

namespace refit::program {
namespace {

/// The transfers of a block by the ranks at their ends.
struct BlockIndex {
    std::map<std::uint32_t, std::vector<std::uint32_t>> by_source;
    std::map<std::uint32_t, std::vector<std::uint32_t>> by_destination;
    std::map<std::uint32_t, std::uint64_t> sent;      ///< Bytes.
    std::map<std::uint32_t, std::uint64_t> received;  ///< Bytes.

    explicit BlockIndex(const TransferBlock& block) {
        for (std::uint32_t i = 0; i < block.size(); ++i) {
            const auto bytes = block.boxes[block.box[i]].volume() * block.element_bytes;
            by_source[block.source[i]].push_back(i);
            by_destination[block.destination[i]].push_back(i);
            sent[block.source[i]] += bytes;
            received[block.destination[i]] += bytes;
        }
    }
};

/// A block run for one tensor.
struct Item {
    std::uint32_t block = 0;
    std::uint32_t first_source = 0;
    Tensor tensor;
    double order = 0.0;  ///< How far its stage has come with it. Range: 0 to 1.
};

/// A replica collective of one group for one tensor.
struct Share {
    std::uint32_t group = 0;
    bool is_broadcast = false;
    std::size_t item = 0;
};

/// What transfer and share steps look at together.
struct Blocks {
    const Plan& plan;
    std::uint32_t train_gpus;
    std::vector<BlockIndex> indices;
    std::vector<Item> items;
};

class TransferStep final : public Step {
public:
    TransferStep(std::uint32_t stage,
                 std::shared_ptr<const Blocks> blocks,
                 std::size_t first,
                 std::size_t last,
                 std::uint32_t limit)
        : Step{stage}, blocks_{std::move(blocks)}, first_{first}, last_{last} {
        std::set<std::pair<std::uint32_t, std::uint32_t>> seen;  // Blocks and where their sources begin.
        std::vector<Deed> messages;
        for (auto i = first; i < last; ++i) {
            const auto& item = blocks_->items[i];
            if (!seen.insert({item.block, item.first_source}).second) {
                continue;
            }
            const auto& block = blocks_->plan.blocks[item.block];
            for (std::size_t k = 0; k < block.size(); ++k) {
                messages.push_back({OperationKind::kSend,
                                    item.first_source + block.source[k],
                                    blocks_->train_gpus + block.destination[k]});
            }
        }
        set_messages(std::move(messages), limit);
    }

    void load(std::uint32_t rank, std::vector<Cargo>& cargo) const override {
        const bool is_trainer = rank < blocks_->train_gpus;
        for (auto i = first_; i < last_; ++i) {
            const auto& item = blocks_->items[i];
            const auto& index = blocks_->indices[item.block];
            const auto& by_rank = is_trainer ? index.by_source : index.by_destination;
            if (is_trainer && rank < item.first_source) {
                continue;
            }
            const auto found = by_rank.find(rank - (is_trainer ? item.first_source : blocks_->train_gpus));
            if (found != by_rank.end()) {
                add(item, found->second, cargo);
            }
        }
    }

private:
    void add(const Item& item, const std::vector<std::uint32_t>& transfers, std::vector<Cargo>& cargo) const {
        const auto& block = blocks_->plan.blocks[item.block];
        for (const auto i : transfers) {
            const auto source = item.first_source + block.source[i];
            const auto destination = blocks_->train_gpus + block.destination[i];
            cargo.push_back({message(source, destination), item.tensor, block.boxes[block.box[i]]});
        }
    }

    std::shared_ptr<const Blocks> blocks_;
    std::size_t first_;
    std::size_t last_;
};

class ShareStep final : public Step {
public:
    ShareStep(std::uint32_t stage,
              std::shared_ptr<const Blocks> blocks,
              const std::vector<Share>& shares,
              const GroupTable& groups,
              std::uint32_t limit)
        : Step{stage}, blocks_{std::move(blocks)}, groups_{groups} {
        std::map<std::pair<std::uint32_t, bool>, std::size_t> known;
        std::vector<Deed> collectives;
        for (const auto& share : shares) {
            const auto [found, is_new] =
                known.try_emplace({share.group, share.is_broadcast}, collectives.size());
            if (is_new) {
                const auto kind = share.is_broadcast ? OperationKind::kBroadcast : OperationKind::kAllGather;
                collectives.push_back({kind, share.group});
                items_.emplace_back();
            }
            items_[found->second].push_back(share.item);
        }
        set_collectives(std::move(collectives), groups, limit);
    }

    void load(std::uint32_t rank, std::vector<Cargo>& cargo) const override {
        for (std::uint32_t deed = 0; deed < deeds().size(); ++deed) {
            const auto place = groups_.place(deeds()[deed].first, rank);
            if (place != kNone) {
                load_deed(deed, place, cargo);
            }
        }
    }

private:
    void load_deed(std::uint32_t deed, std::uint32_t place, std::vector<Cargo>& cargo) const {
        const auto& ranks = groups_.at(deeds()[deed].first);
        const auto givers = deeds()[deed].kind == OperationKind::kBroadcast ? 1 : ranks.size();
        for (const auto i : items_[deed]) {
            const auto& item = blocks_->items[i];
            const auto& block = blocks_->plan.blocks[item.block];
            const auto& arrivals = blocks_->indices[item.block].by_destination;
            for (std::uint32_t owner = 0; owner < givers; ++owner) {
                const auto found = arrivals.find(ranks[owner] - blocks_->train_gpus);
                for (const auto k : found == arrivals.end() ? std::vector<std::uint32_t>{} : found->second) {
                    cargo.push_back({deed, item.tensor, block.boxes[block.box[k]], owner, owner != place});
                }
            }
        }
    }

    std::shared_ptr<const Blocks> blocks_;
    const GroupTable& groups_;
    std::vector<std::vector<std::size_t>> items_;  ///< By deed.
};

/// Turns the uses of transfer stages into items, and their replica collectives into shares.
class TransferReader {
public:
    TransferReader(const Sight& sight, Blocks& blocks) : sight_{sight}, blocks_{blocks} {}

    void read(std::size_t stage_index) {
        const auto& stage = sight_.plan.stages[stage_index];
        const auto begin = blocks_.items.size();
        std::map<std::uint32_t, std::deque<std::size_t>> brought;  // Items with replicas, by class.
        for (const auto& use : stage.transfers) {
            const auto parameter = sight_.plan.blocks[use.block].parameter;
            auto& queue = queue_of(parameter, stage.train_stage);
            for (std::uint64_t t = 0; t < use.tensors; ++t) {
                if (queue.empty()) {
                    throw std::logic_error{"Schedule: transfers of more tensors than there are"};
                }
                blocks_.items.push_back({use.block, use.first_source.index(), queue.front()});
                if (has_replicas(queue.front())) {
                    brought[parameter].push_back(blocks_.items.size() - 1);
                }
                queue.pop_front();
            }
        }
        const auto count = static_cast<double>(blocks_.items.size() - begin);
        for (auto i = begin; i < blocks_.items.size(); ++i) {
            blocks_.items[i].order = (static_cast<double>(i - begin) + 0.5) / count;
        }
        for (const auto& collective : stage.collectives) {
            share(collective, brought[collective.parameters.front()]);
        }
    }

    std::map<std::size_t, std::vector<Share>> shares;  ///< By item, as numbered at first.

private:
    std::deque<Tensor>& queue_of(std::uint32_t parameter, std::uint32_t train_stage) {
        const auto [found, is_new] = queues_.try_emplace({parameter, train_stage});
        const auto& entry = sight_.workload.classes()[parameter];
        for (std::uint32_t g = 0; is_new && g < entry.destinations.size(); ++g) {
            for (std::uint32_t s = 0; s < entry.slices.size(); ++s) {
                const auto& slice = entry.slices[s];
                const bool is_next = slice.generate_stage == g && slice.train_stage == train_stage;
                for (std::uint32_t t = 0; is_next && t < slice.layers; ++t) {
                    found->second.push_back({parameter, s, t});
                }
            }
        }
        return found->second;
    }

    [[nodiscard]] bool has_replicas(const Tensor& tensor) const {
        const auto& entry = sight_.workload.classes()[tensor.parameter];
        const auto& shards = entry.destinations[entry.slices[tensor.slice].generate_stage].shards();
        return std::ranges::any_of(shards, [](const Shard& shard) { return shard.members.size() > 1; });
    }

    void share(const Collective& collective, std::deque<std::size_t>& brought) {
        for (std::uint64_t call = 0; is_among_replicas(collective.role) && call < collective.calls; ++call) {
            if (brought.empty()) {
                throw std::logic_error{"Schedule: replicas share what no transfer brought"};
            }
            for (const auto& group : sight_.plan.groups[collective.groups]) {
                std::vector<std::uint32_t> ranks;
                std::ranges::transform(
                    group, std::back_inserter(ranks), [](RankId rank) { return rank.index(); });
                shares[brought.front()].push_back(
                    {sight_.groups.intern(ranks), is_broadcast(collective.role), brought.front()});
            }
            brought.pop_front();
        }
    }

    const Sight& sight_;
    Blocks& blocks_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<Tensor>>
        queues_;  ///< By class and trainer stage.
};

/// How much of a chunk each rank sends and receives.
class ChunkLoad {
public:
    explicit ChunkLoad(std::uint64_t limit) : limit_{limit} {}

    [[nodiscard]] bool has_room(const Item& item, const BlockIndex& index) const {
        const auto fits = [&](const auto& bytes, std::uint32_t first, const auto& load) {
            return std::ranges::all_of(bytes, [&](const auto& entry) {
                const auto found = load.find(first + entry.first);
                return found == load.end() || found->second + entry.second <= limit_;
            });
        };
        return fits(index.sent, item.first_source, sent_) && fits(index.received, 0, received_);
    }
    void add(const Item& item, const BlockIndex& index) {
        for (const auto& [rank, bytes] : index.sent) {
            sent_[item.first_source + rank] += bytes;
        }
        for (const auto& [rank, bytes] : index.received) {
            received_[rank] += bytes;
        }
    }

private:
    std::uint64_t limit_;
    std::map<std::uint32_t, std::uint64_t> sent_;
    std::map<std::uint32_t, std::uint64_t> received_;
};

}  // namespace

void add_transfer_steps(const Sight& sight, std::size_t first, std::size_t last, Steps& steps) {
    auto blocks = std::make_shared<Blocks>(Blocks{sight.plan, sight.train_gpus, {}, {}});
    for (const auto& block : sight.plan.blocks) {
        blocks->indices.emplace_back(block);
    }
    TransferReader reader{sight, *blocks};
    for (auto stage = first; stage < last; ++stage) {
        reader.read(stage);
    }
    // Stages of several trainers take turns, so that all of them send in every chunk.
    auto& items = blocks->items;
    std::vector<std::size_t> order(items.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        order[i] = i;
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return items[i].order; });
    std::vector<Item> sorted;
    std::vector<std::vector<Share>> shares(items.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        sorted.push_back(items[order[i]]);
        if (const auto found = reader.shares.find(order[i]); found != reader.shares.end()) {
            shares[i] = std::move(found->second);
            std::ranges::for_each(shares[i], [&](Share& share) { share.item = i; });
        }
    }
    items = std::move(sorted);
    const auto limit = sight.settings.most_operations;
    for (std::size_t begin = 0; begin < items.size();) {
        ChunkLoad load{sight.settings.wave_bytes.count()};
        std::vector<Share> shared;
        auto end = begin;
        while (end < items.size() &&
               (end == begin || load.has_room(items[end], blocks->indices[items[end].block]))) {
            load.add(items[end], blocks->indices[items[end].block]);
            shared.insert(shared.end(), shares[end].begin(), shares[end].end());
            ++end;
        }
        const auto stage = static_cast<std::uint32_t>(first);
        steps.push_back(std::make_unique<TransferStep>(stage, blocks, begin, end, limit));
        if (!shared.empty()) {
            steps.push_back(std::make_unique<ShareStep>(stage, blocks, shared, sight.groups, limit));
        }
        begin = end;
    }
}

}  // namespace refit::program
