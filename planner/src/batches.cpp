// SPDX-License-Identifier: Apache-2.0
#include "refit/batches.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace refit {
namespace {

/// What follows others comes after them; within that, the n-th posting of every pair of ranks comes before
/// any pair's next: so all ranks fill their batches alike.
std::vector<std::uint32_t> order_of(const Postings& postings) {
    std::vector<std::uint32_t> depth(postings.size(), 0);
    std::vector<std::uint32_t> turn(postings.size(), 0);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> turns;
    for (std::uint32_t i = 0; i < postings.size(); ++i) {
        if (postings.follows[i] != Postings::kNone) {
            if (postings.follows[i] >= i) {
                throw std::logic_error{"Postings: one follows a later one"};
            }
            depth[i] = depth[postings.follows[i]] + 1;
        }
        turn[i] = turns[{postings.source[i], postings.destination[i]}]++;
    }
    std::vector<std::uint32_t> order(postings.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::sort(order, {}, [&](std::uint32_t i) { return std::tuple{depth[i], turn[i], i}; });
    return order;
}

/// How full the batches of a rank are.
class RankLoad {
public:
    explicit RankLoad(std::uint32_t limit) : limit_{limit} {}

    [[nodiscard]] bool has_room(std::uint32_t batch, std::uint32_t operations) const {
        return batch >= used_.size() || used_[batch] + operations <= limit_;
    }
    /// No batch before this one has room for anything.
    [[nodiscard]] std::uint32_t first_open() const noexcept { return first_open_; }

    void add(std::uint32_t batch) {
        if (batch >= used_.size()) {
            used_.resize(batch + 1, 0);
        }
        ++used_[batch];
        while (first_open_ < used_.size() && used_[first_open_] == limit_) {
            ++first_open_;
        }
    }

private:
    std::uint32_t limit_;
    std::uint32_t first_open_ = 0;
    std::vector<std::uint32_t> used_;
};

}  // namespace

void Postings::add(std::uint32_t from, std::uint32_t to, std::uint32_t after) {
    source.push_back(from);
    destination.push_back(to);
    follows.push_back(after);
}

Postings postings_of(const PlanStage& stage, std::span<const TransferBlock> blocks, const Cluster& cluster) {
    Postings postings;
    for (const auto& use : stage.transfers) {
        const auto& block = blocks[use.block];
        for (std::uint64_t tensor = 0; tensor < use.tensors; ++tensor) {
            for (std::size_t i = 0; i < block.size(); ++i) {
                postings.add(use.first_source.index() + block.source[i],
                             cluster.generator(block.destination[i]).index());
            }
        }
    }
    const auto first = static_cast<std::uint32_t>(postings.size());
    for (std::size_t hop = 0; hop < stage.relays.size(); ++hop) {
        const auto follows = stage.relays.follows[hop];
        postings.add(stage.relays.source[hop],
                     stage.relays.destination[hop],
                     follows == RelayTable::kNone ? Postings::kNone : first + follows);
    }
    return postings;
}

Batches make_batches(const Postings& postings, std::uint32_t limit) {
    if (limit < 2) {
        throw std::logic_error{"make_batches: a batch must hold two operations of a rank"};
    }
    Batches batches;
    batches.batch.resize(postings.size(), 0);
    std::uint32_t ranks = 0;
    for (std::size_t i = 0; i < postings.size(); ++i) {
        ranks = std::max({ranks, postings.source[i] + 1, postings.destination[i] + 1});
    }
    std::vector<RankLoad> loads(ranks, RankLoad{limit});
    for (const auto i : order_of(postings)) {
        auto& from = loads[postings.source[i]];
        auto& to = loads[postings.destination[i]];
        const std::uint32_t operations = &from == &to ? 2 : 1;
        const auto earliest =
            postings.follows[i] == Postings::kNone ? 0 : batches.batch[postings.follows[i]] + 1;
        auto batch = std::max({from.first_open(), to.first_open(), earliest});
        while (!from.has_room(batch, operations) || !to.has_room(batch, operations)) {
            ++batch;
        }
        from.add(batch);
        to.add(batch);
        batches.batch[i] = batch;
        batches.count = std::max(batches.count, batch + 1);
    }
    return batches;
}

std::vector<std::vector<Operation>> operations_of(const Postings& postings,
                                                  const Batches& batches,
                                                  std::uint32_t rank) {
    std::vector<std::vector<Operation>> operations(batches.count);
    for (std::uint32_t i = 0; i < postings.size(); ++i) {
        auto& group = operations.at(batches.batch[i]);
        if (postings.source[i] == rank) {
            group.push_back({i, true});
        }
        if (postings.destination[i] == rank) {
            group.push_back({i, false});
        }
    }
    return operations;
}

}  // namespace refit
